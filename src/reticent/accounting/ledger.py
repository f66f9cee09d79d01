"""The ledger: every release, written to disk before its noisy value is used, and never rewritten.

A file of version 1 begins with the line {"ledger": 1}; then comes one line an entry. Files from before there were
versions have no such line, and entries that read the same. The version is that of the layout: what events mean does not
change (events.py). What else a first line may hold is ignored; a change that old readers must not ignore is a version.
"""

from __future__ import annotations

import json
import os
import weakref
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from reticent.accounting.events import Event, Json, from_json, to_json
from reticent.errors import ResumeError, ReticentError

VERSION = 1
"""Of the files that are written, and the newest that can be read."""


@dataclass(frozen=True)
class Entry:
    """One line: in which round, the number of the query in it, what was released, and a keyed seal of the answer."""

    round: int
    query: int
    event: Event
    seal: str

    def to_line(self) -> str:
        """The entry as one line of JSON."""
        data = {"round": self.round, "query": self.query, **to_json(self.event), "seal": self.seal}
        return json.dumps(data, separators=(",", ":")) + "\n"

    @staticmethod
    def from_line(line: str) -> Entry:
        """The entry that `to_line` wrote."""
        data: dict[str, Json] = json.loads(line)
        number, query, seal = (data.pop(name, None) for name in ("round", "query", "seal"))
        if not (isinstance(number, int) and isinstance(query, int) and isinstance(seal, str)):
            raise ResumeError(f"this is no line of a ledger: {line.strip()[:80]}. Bring back the file as it was.")
        return Entry(number, query, from_json(data), seal)


def read_entries(path: Path) -> list[Entry]:
    """The entries of a ledger file, which is only read; a line that a crash cut short is none of them."""
    return _entries(path, _whole_lines(path))


def _whole_lines(path: Path) -> list[bytes]:
    lines = path.read_bytes().splitlines(keepends=True)
    return lines[:-1] if lines and not lines[-1].endswith(b"\n") else lines


def _entries(path: Path, lines: list[bytes]) -> list[Entry]:
    """What the lines of a file say; refuses a file whose layout is not known here."""
    first = _header(lines)
    if "ledger" not in first:
        return _read(path, lines)
    if first["ledger"] != VERSION:
        raise ResumeError(
            f"{path} is a ledger of version {first['ledger']}, and this Reticent knows version {VERSION} only: go on "
            "with the Reticent that wrote it or a newer one, or start a new run in another folder"
        )
    return _read(path, lines[1:])


def _header(lines: list[bytes]) -> dict[str, Json]:
    try:
        first = json.loads(lines[0]) if lines else {}
    except ValueError:
        first = {}
    return first if isinstance(first, dict) else {}


def _read(path: Path, lines: list[bytes]) -> list[Entry]:
    try:
        return [Entry.from_line(line.decode()) for line in lines]
    except (ArithmeticError, AttributeError, LookupError, ReticentError, TypeError, ValueError) as error:
        raise ResumeError(
            f"{path} is damaged, or no ledger of ours: bring it back as it was, or start a new run in another folder"
        ) from error


class Ledger:
    """An append-only list of entries, in memory or in a file.

    Promise: when `record` returns, the entry is on disk; a line that a crash cut short was never followed by a release.

    >>> from reticent.accounting.events import Gaussian
    >>> ledger = Ledger()
    >>> ledger.record(Entry(round=0, query=0, event=Gaussian(1.0), seal=""))
    True
    >>> ledger.tally()
    {Gaussian(noise_multiplier=1.0): 1}
    """

    def __init__(self, path: Path | None = None):
        self.path = path
        self._entries: dict[tuple[int, int], Entry] = {}
        self._tally: Counter[Event] = Counter()
        self._file: int | None = None
        self._unwritten = b""
        """The header of a new file, until its first entry: a file without entries is empty."""
        if path is not None:
            self._open(path)

    def _open(self, path: Path) -> None:
        lines = _whole_lines(path) if path.exists() else []
        for entry in _entries(path, lines):
            self._remember(entry)
        self._unwritten = b"" if lines else json.dumps({"ledger": VERSION}).encode() + b"\n"
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
        os.ftruncate(self._file, sum(map(len, lines)))  # the process died while writing: nothing was released after it
        os.lseek(self._file, 0, os.SEEK_END)
        weakref.finalize(self, os.close, self._file)

    def _remember(self, entry: Entry) -> None:
        self._entries[entry.round, entry.query] = entry
        self._tally[entry.event] += 1

    def record(self, entry: Entry) -> bool:
        """Write the entry; False if the very same one is there already (a replay, charged once)."""
        before = self._entries.get((entry.round, entry.query))
        if before is not None:
            self._same_or_refuse(before, entry)
            return False
        if self._file is not None:
            line = self._unwritten + entry.to_line().encode()
            self._unwritten = b""
            while line:  # a full disk may take a part of it, and says so at the next try
                line = line[os.write(self._file, line) :]
            os.fdatasync(self._file)
        self._remember(entry)
        return True

    @staticmethod
    def _same_or_refuse(before: Entry, now: Entry) -> None:
        if before.event != now.event:
            changed = f"the event was {before.event} and would now be {now.event}"
        elif before.seal != now.seal:
            changed = "the data, the parameters or the arithmetic (threads, machine) differ"
        else:
            return
        raise ResumeError(
            f"round {now.round} was released before the crash and cannot be repeated: {changed}. The same noise on "
            "another answer would reveal it. Resume with the same data, model, settings and number of threads."
        )

    def holds(self, entry: Entry) -> bool:
        """Whether this place in the run is written already."""
        return (entry.round, entry.query) in self._entries

    def tally(self) -> dict[Event, int]:
        """How often each event happened."""
        return dict(self._tally)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)
