"""Shown: the examples of a draw in the hands of whoever owns them and writes a loop of their own.

What is shown is private and no part of any release: a copy, so that nothing done to it reaches the vault.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reticent.gradients.batches import map_tensors
from reticent.inside.ahead import Fetched
from reticent.inside.drawn import parts
from reticent.inside.draws import Draw, Sampler
from reticent.inside.randomness import Randomness
from reticent.inside.settings import RoundSettings
from reticent.inside.store import Batch, Store, joined

Numbers = NDArray[np.int64]


@dataclass(eq=False)
class Recalled:
    """A store that gives the examples of one draw again without fetching them again: what was shown is what counts."""

    store: Store
    _kept: dict[bytes, Batch] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.store)

    @property
    def at_once(self) -> int:
        """As many as the store itself would give."""
        return self.store.at_once

    def as_store(self) -> Recalled:
        """Itself."""
        return self

    def take(self, index: Numbers) -> Batch:
        """The examples of these numbers."""
        kept = self._kept.get(index.tobytes())
        return self.store.take(index) if kept is None else kept

    def keep(self, index: Numbers) -> Batch:
        """Fetch the examples of a draw, and forget those of the one before."""
        found = {part.tobytes(): self.store.take(part) for part in parts(self.store, index)}
        self._kept = found
        if len(found) == 1:
            return next(iter(found.values()))
        return joined(list(found.values()), self.store.take(index[:0]))


@dataclass(frozen=True, eq=False)
class Window:
    """Who is drawn in a round of a run with this key, shown to the owner's loop before the run answers for the same.

    Promise: it releases nothing and changes no draw; the vault of a run with this key draws the same examples.
    """

    examples: Recalled
    sampler: Sampler
    settings: RoundSettings
    _randomness: Randomness = field(repr=False)

    def show(self, number: int) -> Batch:
        """A copy of the examples drawn in round `number`."""
        index = self._draw(number)._index
        if isinstance(self.examples.store, Fetched):
            for later in (number, number + 1):
                seed = self._randomness.whole(later, "load", 0)
                for part in parts(self.examples, self._draw(later)._index):
                    self.examples.store.expect(part, later, seed)
        return map_tensors(self.examples.keep(index), lambda part: part.clone())

    def _draw(self, number: int) -> Draw:
        stream = self._randomness.stream(number, "draw", 0)  # as the vault does for the first draw of a round
        return self.sampler.draw(self.settings, len(self.examples), stream, {})
