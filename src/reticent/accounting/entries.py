"""Entries: what the lines of a ledger say, and how a ledger file is read; nothing here opens one for writing.

A file of version 2 begins with the line {"ledger": 2}; then comes one framed line an entry (framing.py). In files of
version 1, and in those from before there were versions, which have no first line, entries stand bare: they can be read,
but not be gone on with. The version is that of the layout: what events mean does not change (events.py). What else a
first line may hold is ignored; a change that old readers must not ignore is a version.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from reticent.accounting.event_json import Json, from_json, to_json
from reticent.accounting.events import Event
from reticent.accounting.framing import BEGINS, begin, cut_short, link, unframe
from reticent.errors import ResumeError, ReticentError

VERSION = 2
"""Of the files that are written, and the newest that can be read."""
HEADER = json.dumps({"ledger": VERSION}).encode()


@dataclass(frozen=True, slots=True)
class Entry:
    """One line: in which round, the number of the query in it, what was released, and a keyed seal of the answer."""

    round: int
    query: int
    event: Event
    seal: str

    def to_body(self) -> bytes:
        """The entry as an object of JSON."""
        data = {"round": self.round, "query": self.query, **to_json(self.event), "seal": self.seal}
        return json.dumps(data, separators=(",", ":")).encode()

    @staticmethod
    def from_body(body: bytes) -> Entry:
        """The entry that `to_body` wrote; ValueError if it is none."""
        try:
            data: dict[str, Json] = json.loads(body)
            number, query, seal = (data.pop(name) for name in ("round", "query", "seal"))
            if isinstance(number, int) and isinstance(query, int) and isinstance(seal, str):
                return Entry(number, query, from_json(data), seal)
        except (ArithmeticError, AttributeError, LookupError, RecursionError, ReticentError, TypeError, ValueError):
            pass
        raise ValueError("it is no entry of a ledger")


@dataclass(frozen=True)
class Mark:
    """How far a ledger had come: so many entries, and the hash that chains all of them."""

    entries: int
    chain: str

    def to_json(self) -> dict[str, int | str]:
        """The mark as plain data."""
        return asdict(self)


@dataclass(frozen=True)
class Book:
    """A ledger file as it was found."""

    version: int
    """0: from before there were versions."""
    entries: tuple[Entry, ...]
    links: tuple[bytes, ...]
    """The hash before the first entry, and that after each."""
    whole: bytes
    """The file up to the end of its last whole entry."""
    left: bytes = b""
    """What a crash left of one more."""

    @property
    def mark(self) -> Mark:
        """How far it goes."""
        return Mark(len(self.entries), self.links[-1].hex())


NEW = Book(VERSION, (), (begin(HEADER),), b"")


def read_entries(path: Path) -> list[Entry]:
    """The entries of a ledger file, which is only read; a line that a crash cut short is none of them."""
    return list(read_ledger(path).entries)


def read_ledger(path: Path) -> Book:
    """A ledger file; refuses one that is damaged, naming the line, or whose layout is not known here."""
    try:
        return parse_ledger(path.read_bytes(), path)
    except OSError as error:
        raise ResumeError(f"cannot read {path}: {error.strerror or error}. Bring the ledger back.") from error


def parse_ledger(data: bytes, path: Path) -> Book:
    """What the bytes of a ledger file say; errors name the file."""
    *lines, tail = data.split(b"\n")
    if not lines and HEADER.startswith(tail.rstrip(b"\0")):
        return Book(VERSION, NEW.entries, NEW.links, b"", tail)
    version = _version(path, lines[0] if lines else tail)
    return _read_framed(path, lines, tail) if version == VERSION else _read_bare(path, lines, tail, version)


def _version(path: Path, first: bytes) -> int:
    try:
        header = json.loads(first)
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict) or "ledger" not in header:
        return 0
    version = header["ledger"]
    if type(version) is not int or not 1 <= version <= VERSION:
        raise ResumeError(
            f"{path} is a ledger of version {version}, and this Reticent knows versions up to {VERSION} only: go on "
            "with the Reticent that wrote it or a newer one, or start a new run in another folder"
        )
    return version


def _read_framed(path: Path, lines: list[bytes], tail: bytes) -> Book:
    """A file of framed lines; the last one counts also where only its end is missing."""
    if not lines:
        raise damaged(path, 1, "it is not ended")
    left = tail if cut_short(tail) else b""
    unended = b"" if left else tail
    entries: dict[tuple[int, int], Entry] = {}
    links = [begin(lines[0])]
    for number, line in enumerate([*lines[1:], *([unended] if unended else [])], start=2):
        try:
            body = unframe(line, links[-1])
            entry = Entry.from_body(body)
        except ValueError as error:
            raise damaged(path, number, str(error)) from error
        if entries.setdefault((entry.round, entry.query), entry) is not entry:
            raise damaged(path, number, f"round {entry.round} has an entry for query {entry.query} already")
        links.append(link(links[-1], body))
    whole = b"".join(line + b"\n" for line in lines) + unended
    return Book(VERSION, tuple(entries.values()), tuple(links), whole, left)


def _read_bare(path: Path, lines: list[bytes], tail: bytes, version: int) -> Book:
    """A file of an older version; a line that stands there twice, as a failed write left it, is one entry."""
    entries: dict[tuple[int, int], Entry] = {}
    links = [begin(b"")]
    for number, line in enumerate([*lines, *([tail] if tail else [])], start=1):
        if number == 1 and version:
            continue
        if line.startswith(BEGINS):
            raise damaged(path, number, f"its layout is that of version {VERSION}, but the first line does not say so")
        try:
            entry = Entry.from_body(line)
        except ValueError as error:
            if number > len(lines):
                break  # a crash cut it short
            raise damaged(path, number, str(error)) from error
        if entries.setdefault((entry.round, entry.query), entry) != entry:
            raise damaged(path, number, f"round {entry.round} has another entry for query {entry.query} already")
        if len(entries) == len(links):
            links.append(link(links[-1], line))
    return Book(version, tuple(entries.values()), tuple(links), b"")


def damaged(path: Path, number: int, why: str) -> ResumeError:
    """The error for a line that is not what was written."""
    return ResumeError(
        f"{path} is damaged, or no ledger of ours: line {number}: {why}. Bring the file back as it was, or start a "
        "new run in another folder"
    )
