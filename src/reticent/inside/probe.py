"""The probe: the one supported window into the vault; a run that it watches is a test and states no guarantee."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from reticent.accounting import Event
from reticent.inside.draws import Draw, Sampler
from reticent.inside.sealed import Sealed
from reticent.inside.settings import RoundSettings


@dataclass(frozen=True, eq=False)
class Opening:
    """One pass through the door: the sealed answer, what the door said it costs, and what came out."""

    sealed: Tensor
    sensitivity: float
    drawn: int
    event: Event
    released: Tensor


class Probe:
    """Writes down what passes a vault's door, which nobody outside may see: `Run.watch` makes one.

    A `replay` of what another run released makes the world outside the same for both: then every sealed answer may be
    compared, and any difference outside came round the door.
    """

    def __init__(self, draw: Callable[[Sampler, RoundSettings], Draw], replay: Sequence[Opening] = ()):
        self.openings: list[Opening] = []
        self._draw = draw
        self._replay = list(replay)

    def draws(self, sampler: Sampler, settings: RoundSettings, rounds: int) -> Iterator[NDArray[np.int64]]:
        """Who would be drawn in each of so many rounds, by the randomness of this run."""
        for number in range(rounds):
            yield self._draw(sampler, replace(settings, number=number))._index

    def saw(self, sealed: Sealed, event: Event, released: Tensor) -> Tensor:
        """Note one release; with a replay, what came out of another run comes out again."""
        self.openings.append(
            Opening(sealed._value.clone(), sealed.sensitivity, len(sealed.draw._index), event, released.clone())
        )
        if len(self.openings) <= len(self._replay):
            return self._replay[len(self.openings) - 1].released.clone()
        return released
