"""The ledger: every release, written to disk before its noisy value is used, and never rewritten."""

from __future__ import annotations

import json
import os
import weakref
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reticent.accounting.events import Event, from_json, to_json
from reticent.errors import ResumeError


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
        data: dict[str, Any] = json.loads(line)
        place = {"round": data.pop("round"), "query": data.pop("query"), "seal": data.pop("seal")}
        return Entry(event=from_json(data), **place)


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
        if path is not None:
            self._open(path)

    def _open(self, path: Path) -> None:
        whole = 0
        if path.exists():
            for raw in path.read_bytes().splitlines(keepends=True):
                if not raw.endswith(b"\n"):
                    break  # the process died while writing: nothing was released after it
                self._remember(Entry.from_line(raw.decode()))
                whole += len(raw)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
        os.ftruncate(self._file, whole)
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
            line = entry.to_line().encode()
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

    def rounds(self) -> int:
        """How many rounds have at least one entry."""
        return len({number for number, _ in self._entries})

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)
