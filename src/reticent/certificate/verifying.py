"""Verify a folder: do weights, result, ledger, card and price fit together? Neither the data nor torch is needed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from reticent.accounting.ledger import Book, read_ledger
from reticent.certificate.card import CARD, LEDGERS, WEIGHTS, Card, digest_of, read_card
from reticent.certificate.pricing import check_plan, check_price, check_second_opinion
from reticent.certificate.releases import check_ledger, check_released
from reticent.certificate.report import Check, Verified
from reticent.errors import ReticentError
from reticent.results import ANSWER, RECORD, read_record, read_result
from reticent.results.sealing import seal_of


def verify(folder: str | Path, *, fingerprint: str | None = None) -> Verified:
    """Check the certificate in a folder; with the `fingerprint` that was published of it, also that it is that one.

    >>> verify("nowhere").wrong
    ['card']
    """
    path = Path(folder)
    try:
        card = read_card(path)
        found = seal_of(path / CARD)
    except ReticentError as error:
        return Verified(str(path), None, None, (Check("card", False, str(error), "do not rely on what is said here"),))
    first = _card(card, found, fingerprint)
    if card.version < 2:
        return Verified(str(path), card.guarantee, None, (first,), old=True)
    return Verified(str(path), card.guarantee, found, (first, *_checks(path, card)))


def _card(card: Card, found: str | None, wanted: str | None) -> Check:
    if card.version < 2:
        said = "it is from an older version: nothing binds weights and ledger to it, and it cannot be priced again"
        return Check("card", False, said, "train and save again with this version; `reticent audit` prices its ledger")
    if wanted is not None and found != wanted.lower():
        return Check("card", False, f"its fingerprint is {found}, not {wanted}", "get the files that were published")
    return Check("card", True, f"as it was written, version {card.version}")


OTHER_WEIGHTS = re.compile(r"adapter_model\.safetensors|model-\d+-of-\d+\.safetensors")
"""Weights as other libraries write them: an adapter alone, or a model in parts."""


def _checks(path: Path, card: Card) -> Iterator[Check]:
    weights = [name for name in sorted(card.files) if OTHER_WEIGHTS.fullmatch(Path(name).name)]
    if not weights or WEIGHTS in card.files or (path / WEIGHTS).exists():
        weights = [WEIGHTS, *weights]
    for name in weights:
        yield _file(path, card, "weights", name)
    if ANSWER in card.files or (path / ANSWER).exists():
        yield _result(path, card)
    if (path / RECORD).exists():
        yield _record(path, card)
    for name in sorted(card.files.keys() - {*weights, ANSWER, *LEDGERS}):
        yield _file(path, card, Path(name).stem, name)
    books: dict[str, Book] = {}
    for name in LEDGERS:
        if name in card.files or (path / name).exists():
            yield _ledger(path, card, name, books)
    if books:
        yield check_released(books, card)
    yield check_plan(card)
    yield check_price(card)
    yield check_second_opinion(card)


def _file(path: Path, card: Card, name: str, file: str) -> Check:
    """A file is there, and is the one that the card was made with."""
    remedy = f"bring back {file} as it was, and do not rely on the guarantee without it"
    if not (path / file).exists():
        return Check(name, False, f"{file} is not there", remedy)
    if file not in card.files:
        return Check(name, False, f"{file} is not named on the card", remedy)
    try:
        same = digest_of(path / file) == card.files[file]
    except OSError as error:
        return Check(name, False, f"cannot read {file}: {error.strerror or error}", remedy)
    if not same:
        return Check(name, False, f"{file} is not the one that the card was made with: its SHA-256 differs", remedy)
    return Check(name, True, f"{file} is the one that the card was made with")


def _result(path: Path, card: Card) -> Check:
    found = _file(path, card, "result", ANSWER)
    if not found.ok:
        return found
    try:
        result = read_result(path)
    except ReticentError as error:
        return Check("result", False, str(error), f"bring back {ANSWER} as it was")
    same = (result.guarantee, result.rounds, result.kept) == (card.guarantee, card.rounds, card.kept)
    says = "it says what the card says" if same else "it says another guarantee, or other rounds, than the card"
    return Check("result", same, says, "" if same else "rely on neither of them")


def _record(path: Path, card: Card) -> Check:
    """What a sweep wrote later, when there was a card already: it must say the same."""
    remedy = f"bring back {RECORD} as it was"
    try:
        record = read_record(path)
        ledger = record.ledger.sha256 if record is not None and record.ledger is not None else None
    except ReticentError as error:
        return Check("record", False, str(error), remedy)
    if record is not None and record.done and record.guarantee != card.guarantee:
        return Check("record", False, f"{RECORD} says another guarantee than the card", remedy)
    if ledger is not None and ledger != card.files.get(LEDGERS[0]):
        return Check("record", False, f"{RECORD} was made with another ledger", remedy)
    return Check("record", True, "it says what the card says")


def _ledger(path: Path, card: Card, file: str, books: dict[str, Book]) -> Check:
    """A ledger is readable, its chain unbroken, and it is the one that the card was made with."""
    name = file.removesuffix(".jsonl")
    found = _file(path, card, name, file)
    if not (path / file).exists():
        return found
    try:
        book = books[file] = read_ledger(path / file)
    except ReticentError as error:
        return Check(name, False, str(error), f"bring back {file} as it was")
    return check_ledger(found, book, card) if file == LEDGERS[0] else found
