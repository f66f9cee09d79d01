"""Stored runs: does the ledger on disk cost what the card beside it says?"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from reticent.accounting import Event, Guarantee, price
from reticent.accounting.ledger import read_entries
from reticent.accounting.pricing import Accountant
from reticent.audits.findings import Finding

LEDGERS = ("ledger", "fill", "statistics", "centre")


def read_events(folder: Path) -> dict[Event, int]:
    """How often each event stands in the ledgers of a run, what was released before it included; only read."""
    paths = [path for name in LEDGERS if (path := folder / f"{name}.jsonl").exists()]
    return dict(Counter(entry.event for path in paths for entry in read_entries(path)))


def check_stored(folder: Path, guarantee: Guarantee) -> Finding:
    """The events on disk cost no more than the guarantee on the card."""
    said = guarantee.epsilon
    cost = price(
        read_events(folder), guarantee.delta, accountant=_accountant(guarantee), adjacency=guarantee.adjacency
    ).epsilon
    says = f"the ledger on disk costs epsilon {cost:.4g}, the card says {said:.4g}"
    return Finding("stored ledger", cost <= said * (1 + 1e-6), says, {"ledger": cost, "card": said})


def _accountant(guarantee: Guarantee) -> Accountant:
    """The one that the card names; a filter's sum is of Renyi divergences, and what passed it costs no more."""
    return "rdp" if guarantee.accountant == "rdp" else "best"
