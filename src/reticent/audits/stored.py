"""Stored runs: does the ledger on disk cost what the card beside it says?"""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

from reticent.accounting import Entry, Event, price
from reticent.audits.findings import Finding
from reticent.errors import ResumeError


def read_result(folder: Path) -> dict[str, Any]:
    """The answer that a finished run left in its folder."""
    path = folder / "result.json"
    if not path.exists():
        raise ResumeError(f"{folder} holds no finished run: result.json is not there; finish it with train --resume")
    answer: dict[str, Any] = json.loads(path.read_text())
    return answer


def read_events(folder: Path) -> dict[Event, int]:
    """How often each event stands in the ledger of a run; the file is only read."""
    lines = (folder / "ledger.jsonl").read_text().splitlines(keepends=True)
    return dict(Counter(Entry.from_line(line).event for line in lines if line.endswith("\n")))


def check_stored(folder: Path) -> Finding:
    """The events on disk cost no more than the guarantee on the card."""
    guarantee = read_result(folder)["guarantee"]
    said = math.inf if guarantee["epsilon"] is None else float(guarantee["epsilon"])
    cost = price(read_events(folder), guarantee["delta"], adaptive=guarantee["accountant"] == "rdp").epsilon
    says = f"the ledger on disk costs epsilon {cost:.4g}, the card says {said:.4g}"
    return Finding("stored ledger", cost <= said * (1 + 1e-6), says, {"ledger": cost, "card": said})
