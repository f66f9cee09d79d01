"""Releases: does a ledger hold what the card says was released?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from reticent.accounting import Event
from reticent.accounting.ledger import Book
from reticent.certificate.card import LEDGERS, Card
from reticent.certificate.report import Check

_REMEDY = "bring the ledger back as it was, and do not rely on the guarantee without it"


def check_ledger(file: Check, book: Book, card: Card) -> Check:
    """The run's ledger comes as far as the card says, by the same steps; `file` says whether its bytes are the same."""
    if card.charged is None:
        return Check("ledger", False, "there is a ledger, and the card knows of no releases", _REMEDY)
    said = card.charged.ledger
    if book.mark.entries != said.entries:
        found = f"it holds {book.mark.entries} releases, and the card says {said.entries}"
        return Check("ledger", False, found, _REMEDY)
    if book.mark != said:
        return Check("ledger", False, f"its {said.entries} releases are not those that the card was made with", _REMEDY)
    found = f"{said.entries} releases, their chain is unbroken and ends where the card says"
    return replace(file, found=found) if file.ok else file


def check_released(books: Mapping[str, Book], card: Card) -> Check:
    """The events in the ledgers are those on the card."""
    made: Counter[Event] = Counter()
    before: Counter[Event] = Counter()
    for name, book in books.items():
        (made if name == LEDGERS[0] else before).update(entry.event for entry in book.entries)
    if card.charged is None:
        return Check("releases", not made + before, "the card knows of no releases", _REMEDY if made + before else "")
    if LEDGERS[0] in books and made != Counter(card.charged.released):
        return Check("releases", False, "the ledger holds other events than the card", _REMEDY)
    if books.keys() - {LEDGERS[0]} and before != Counter(card.charged.before()):
        found = "what was released before the run, by its own ledgers, is not what the card says"
        return Check("releases", False, found, _REMEDY)
    total = sum((made + before).values())
    return Check("releases", True, f"all {total} are on the card, as the ledgers have them")
