"""Drawn: the examples a draw chose, as a query sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from reticent.inside.draws import Draw
from reticent.inside.persons import Persons
from reticent.inside.store import Batch, Device, Store, moved
from reticent.inside.views import Views


@dataclass(frozen=True, eq=False)
class Drawn:
    """Everything code inside may use to answer a query: the examples drawn, randomness, and what is remembered.

    Where a draw is divided, all of it is about one share.
    """

    draw: Draw
    _rng: np.random.Generator | Callable[[], np.random.Generator]
    memory: dict[str, Tensor]
    _store: Store = field(repr=False)
    _device: Device = "cpu"
    notes: dict[str, Tensor] = field(default_factory=dict, repr=False)
    """What is to be remembered of each example drawn: the vault puts it into the memory."""
    _place: slice = field(default_factory=lambda: slice(None), repr=False)
    """Where the share lies in the whole draw."""
    _of: int | None = field(default=None, repr=False)
    """How many were drawn in all."""
    _views: Views | None = None
    """Which views of each example are looked at, instead of the example alone."""
    _secret: int = field(default=0, repr=False)
    """What the views of this round follow from."""

    @cached_property
    def rng(self) -> np.random.Generator:
        """Randomness of this share; few queries need any, so it is made when it is asked for."""
        return self._rng() if callable(self._rng) else self._rng

    @property
    def population(self) -> int:
        """How many examples there really are, drawn or not."""
        return len(self._store)

    def coins(self) -> NDArray[np.float64]:
        """A number between 0 and 1 for each example drawn, the same however a draw is divided; to be asked once."""
        return self.rng.random(len(self.draw._index) if self._of is None else self._of)[self._place]

    def batches(self) -> Iterator[Batch]:
        """The examples drawn, a part at a time; nobody drawn: none, since few models can answer for no rows."""
        yield from self._fetch(self.draw._index)

    def a_part(self, rng: np.random.Generator) -> Batch | None:
        """One of the parts, by chance; None if nobody was drawn."""
        found = list(self._parts(self.draw._index))
        chosen = found[rng.integers(len(found))] if len(found) > 1 else next(iter(found), None)
        return None if chosen is None else self._taken(chosen)

    def others(self) -> Iterator[Iterator[Batch]]:
        """The same for every other draw that could have been made instead."""
        return (self._fetch(index) for index in self.draw._others)

    def _fetch(self, index: NDArray[np.int64]) -> Iterator[Batch]:
        """In parts that bound memory, not the answer."""
        for part in self._parts(index):
            yield self._taken(part)

    def _parts(self, index: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        """Fewer at a time where each has several views."""
        each = 1 if self._views is None else self._views.count
        for part in parts(self._store, index):
            step = max(1, -(-len(part) // each))
            yield from (part[start : start + step] for start in range(0, len(part), step))

    def _taken(self, part: NDArray[np.int64]) -> Batch:
        batch = self._store.take(part)
        return moved(batch if self._views is None else self._views.seen(batch, part, self._secret), self._device)


def parts(store: Store, index: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """The examples of these numbers in parts that a store takes at a time."""
    if isinstance(store, Persons):
        return store.parts(index)
    return (index[start : start + store.at_once] for start in range(0, len(index), store.at_once))
