"""Stored runs: does the ledger on disk cost what the card beside it says?"""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

from reticent.accounting import Event, price
from reticent.accounting.ledger import read_entries
from reticent.accounting.pricing import Accountant
from reticent.audits.findings import Finding
from reticent.errors import ResumeError

LEDGERS = ("ledger", "statistics", "centre")


def read_result(folder: Path) -> dict[str, Any]:
    """The answer that a finished run left in its folder."""
    path = folder / "result.json"
    if not path.exists():
        raise ResumeError(f"{folder} holds no finished run: result.json is not there; finish it with train --resume")
    answer: dict[str, Any] = json.loads(path.read_text())
    return answer


def read_events(folder: Path) -> dict[Event, int]:
    """How often each event stands in the ledgers of a run, what was released before it included; only read."""
    paths = [folder / f"{name}.jsonl" for name in LEDGERS]
    return dict(Counter(entry.event for path in paths if path.exists() for entry in read_entries(path)))


def check_stored(folder: Path) -> Finding:
    """The events on disk cost no more than the guarantee on the card."""
    guarantee = read_result(folder)["guarantee"]
    said = math.inf if guarantee["epsilon"] is None else float(guarantee["epsilon"])
    cost = price(read_events(folder), guarantee["delta"], accountant=_accountant(guarantee)).epsilon
    says = f"the ledger on disk costs epsilon {cost:.4g}, the card says {said:.4g}"
    return Finding("stored ledger", cost <= said * (1 + 1e-6), says, {"ledger": cost, "card": said})


def _accountant(guarantee: dict[str, Any]) -> Accountant:
    """The one that the card names; a filter's sum is of Renyi divergences, and what passed it costs no more."""
    return "rdp" if guarantee["accountant"] == "rdp" else "best"
