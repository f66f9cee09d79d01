"""Ahead: the examples of the next draw are fetched by others while this one is computed with.

Who is drawn next follows from the key, so it is known; the key itself stays where it is. Fetching ahead changes no
answer: what was fetched is used for just the examples it was fetched for, and whatever fails is fetched again as if
nobody had looked ahead. A record that cannot be read is a row that counts for nothing there as here.
"""

from __future__ import annotations

import multiprocessing
import pickle
import random
import weakref
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from reticent.errors import DataError, require
from reticent.executors.parents import end_with_parent
from reticent.inside.converting import Converted
from reticent.inside.drawn import parts
from reticent.inside.persons import Persons
from reticent.inside.shares import Shard
from reticent.inside.store import Batch, Mapped, Store, as_store, joined

Numbers = NDArray[np.int64]
ROWS = 256
"""So many examples are fetched in one go: each goes with a seed of its own, however many workers there are."""


@dataclass(frozen=True, eq=False)
class Ahead:
    """Examples, and how many workers fetch those of the next draw."""

    examples: Any
    workers: int = 1

    def __post_init__(self) -> None:
        require(self.workers >= 1, f"at least one worker is needed to fetch examples ahead, not {self.workers}")

    def __len__(self) -> int:
        return len(as_store(self.examples))

    def __getattr__(self, name: str) -> Any:
        """What is said of the examples (whose they are, how they were read) is said of these."""
        if name.startswith("__") or name in ("examples", "workers"):
            raise AttributeError(name)
        return getattr(self.examples, name)

    def as_store(self) -> Fetched:
        """The store that a vault holds; nobody is at work for it before the first draw."""
        return Fetched(as_store(self.examples), self.workers)


@dataclass(eq=False)
class Fetched:
    """A store whose examples are fetched by workers as soon as it is known who they will be.

    Arrays are read by threads. What a Dataset does with a record is the user's own code, so it is done in processes of
    their own, which are not forked from this one and are sent nothing but the dataset.
    """

    store: Store
    workers: int
    _coming: dict[bytes, _Coming] = field(default_factory=dict, repr=False)
    _pool: Executor | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.store)

    @property
    def at_once(self) -> int:
        """As many as the store itself would give."""
        return self.store.at_once

    def as_store(self) -> Fetched:
        """Itself."""
        return self

    def expect(self, index: Numbers, number: int, seed: int) -> None:
        """These will be asked for in round `number`; what was for earlier rounds is let go."""
        self._coming = {key: kept for key, kept in self._coming.items() if kept.number >= number - 1}
        key = index.tobytes()
        if key in self._coming:
            self._coming[key].number = max(number, self._coming[key].number)
            return
        starts = range(0, len(index), ROWS)
        pieces = [_Piece(index[start : start + ROWS], seed + start) for start in starts]
        for piece in pieces:
            piece.future = self._sent(piece)
        self._coming[key] = _Coming(number, pieces)

    def take(self, index: Numbers) -> Batch:
        """The examples of these numbers, from whoever has them."""
        coming = self._coming.get(index.tobytes())
        if coming is None or not coming.pieces:
            return self.store.take(index)
        found = [self._fetched(piece) for piece in coming.pieces]
        return found[0] if len(found) == 1 else joined(found, found[0])

    def _fetched(self, piece: _Piece) -> Batch:
        if piece.future is not None:
            try:
                return _unpacked(piece.future.result())
            except Exception:  # a worker is lost: nobody hears of it, since it may be a record's doing
                self._pool = piece.future = None
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(piece.seed)
            return self.store.take(piece.index)

    def _sent(self, piece: _Piece) -> Future[Any] | None:
        try:
            if self._pool is None:
                self._pool = self._started()
            if isinstance(self._pool, ProcessPoolExecutor):
                return self._pool.submit(_take, piece.index, piece.seed)
            return self._pool.submit(self.store.take, piece.index)
        except RuntimeError:  # it cannot be used any more
            self._pool = None
            return None

    def _started(self) -> Executor:
        pool: Executor
        if isinstance(self.store, Mapped):
            fresh = multiprocessing.get_context("forkserver")
            fresh.set_forkserver_preload([__name__])
            pool = ProcessPoolExecutor(self.workers, fresh, initializer=_hold, initargs=(_packed(self.store),))
        else:
            pool = ThreadPoolExecutor(self.workers, thread_name_prefix="ahead")
        weakref.finalize(self, pool.shutdown, wait=False, cancel_futures=True)
        return pool


@dataclass(eq=False)
class _Coming:
    number: int
    """The last round that they are expected in."""
    pieces: list[_Piece]


@dataclass(eq=False)
class _Piece:
    index: Numbers
    seed: int
    future: Future[Any] | None = None


def foresees(examples: Store) -> bool:
    """Whether somebody fetches examples ahead."""
    return _fetcher(examples) is not None


def expect(examples: Store, index: Numbers, number: int, seed: int) -> None:
    """Let those be fetched who are drawn in round `number`."""
    fetcher = _fetcher(examples)
    if fetcher is None:
        return
    for place, part in enumerate(_rows(examples, index, number)):
        fetcher.expect(part, number, (seed + (place << 32)) % 2**63)


def _rows(examples: Store, index: Numbers, number: int) -> Iterator[Numbers]:
    """The rows of the examples drawn, in the parts that they will be asked for."""
    if isinstance(examples, Shard):
        return (part - examples.first for part in parts(examples, index))
    if isinstance(examples, Persons):
        people = examples.turned(number)
        return (people.numbers(part).reshape(-1) for part in people.parts(index))
    return parts(examples, index)


def _fetcher(examples: Store) -> Fetched | None:
    while isinstance(examples, Persons | Converted | Shard):
        examples = examples.rows if isinstance(examples, Persons) else examples.store
    return examples if isinstance(examples, Fetched) else None


# -- in a worker -----------------------------------------------------------------------------------------------------

_HELD: list[Store] = []


def _packed(store: Store) -> bytes:
    try:
        return pickle.dumps(store)
    except Exception as error:
        raise DataError(
            f"the dataset cannot be sent to the processes that fetch ahead ({error}): let it open its files when they "
            "are first read, and define it in a module; or do without data.ahead"
        ) from error


def _hold(store: bytes) -> None:
    end_with_parent()
    torch.set_num_threads(1)
    _HELD.append(pickle.loads(store))


def _take(index: Numbers, seed: int) -> bytes:
    """Fetch some; chance in a dataset depends on the run's key and not on which worker this is."""
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)
    return pickle.dumps(_HELD[0].take(index))


def _unpacked(found: Any) -> Batch:
    return pickle.loads(found) if isinstance(found, bytes) else cast("Batch", found)
