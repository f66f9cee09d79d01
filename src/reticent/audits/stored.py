"""Stored runs: does the ledger on disk cost what the card beside it says, and do the files belong together?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from reticent.accounting import Event, Guarantee, price
from reticent.accounting.ledger import read_entries
from reticent.accounting.pricing import Accountant
from reticent.audits.findings import Finding
from reticent.certificate import Verified, verify
from reticent.certificate.card import LEDGERS
from reticent.errors import ReticentError


def read_events(folder: Path) -> dict[Event, int]:
    """How often each event stands in the ledgers of a run, what was released before it included; only read."""
    paths = [path for name in LEDGERS if (path := folder / name).exists()]
    return dict(Counter(entry.event for path in paths for entry in read_entries(path)))


def check_stored(folder: Path, guarantee: Guarantee) -> Finding:
    """The events on disk cost no more than the guarantee says, and the certificate of the folder is right."""
    found = verify(folder)
    try:
        priced = check_events(read_events(folder), guarantee, "the ledger on disk")
    except (ReticentError, OSError, ValueError) as error:
        unread = f"the ledger on disk cannot be read: {error}; {_certificate(found)}"
        return Finding("stored ledger", False, unread, {"card": guarantee.epsilon, "wrong": found.wrong})
    holds = priced.holds and (found.ok or found.old)
    figures = {**priced.figures, "wrong": found.wrong}
    return Finding("stored ledger", holds, f"{priced.says}; {_certificate(found)}", figures)


def check_events(events: Mapping[Event, int], guarantee: Guarantee, where: str) -> Finding:
    """The events of a ledger cost no more than the guarantee says."""
    said = guarantee.epsilon
    cost = price(events, guarantee.delta, accountant=_accountant(guarantee), adjacency=guarantee.adjacency).epsilon
    says = f"{where} costs epsilon {cost:.4g}, the card says {said:.4g}"
    return Finding("stored ledger", cost <= said * (1 + 1e-6), says, {"ledger": cost, "card": said})


def _certificate(found: Verified) -> str:
    if found.ok:
        return "weights, result and ledger are those of the card"
    return "; ".join(f"{check.name}: {check.found}" for check in found.checks if not check.ok)


def _accountant(guarantee: Guarantee) -> Accountant:
    """The one that the card names; a filter's sum is of Renyi divergences, and what passed it costs no more."""
    return "rdp" if guarantee.accountant == "rdp" else "best"
