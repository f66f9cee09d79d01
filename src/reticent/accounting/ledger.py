"""The ledger: every release, written to disk before its noisy value is used, and never rewritten."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from reticent.accounting.entries import HEADER, NEW, VERSION, Book, Entry, Mark, read_entries, read_ledger
from reticent.accounting.events import Event
from reticent.accounting.framing import frame, link
from reticent.accounting.journal import Journal
from reticent.errors import ResumeError

__all__ = ["VERSION", "Book", "Entry", "Ledger", "Mark", "read_entries", "read_ledger"]


class Ledger:
    """An append-only list of entries, in memory or in a file; the file is opened for writing by the first `record`.

    Promise: when `record` returns, the entry is on disk, once; a line that a crash cut short was never followed by a
    release.

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
        self._links = list(NEW.links)
        self._journal: Journal | None = None
        if path is not None:
            self._open(path)

    def _open(self, path: Path) -> None:
        found = read_ledger(path) if path.exists() else NEW
        for entry in found.entries:
            self._remember(entry)
        self._links = list(found.links)
        self._journal = Journal(path, found)

    def _remember(self, entry: Entry) -> None:
        self._entries[entry.round, entry.query] = entry
        self._tally[entry.event] += 1

    def record(self, entry: Entry) -> bool:
        """Write the entry; False if the very same one is there already (a replay, charged once)."""
        if self._journal is not None:
            self._journal.ready()
        before = self._entries.get((entry.round, entry.query))
        if before is not None:
            self._same_or_refuse(before, entry)
            return False
        body = entry.to_body()
        if self._journal is not None:
            header = HEADER + b"\n" if self._journal.empty else b""
            self._journal.append(header + frame(body, self._links[-1]))
        self._links.append(link(self._links[-1], body))
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

    def mark(self, entries: int | None = None) -> Mark:
        """How far it has come, or had come when it held so many entries.

        >>> Ledger().mark().entries
        0
        """
        count = len(self) if entries is None else entries
        return Mark(count, self._links[count].hex())

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)
