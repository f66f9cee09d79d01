"""Buffers: sums go into all later answers, through a few buffers that decay (BLT, Dvijotham et al. 2024)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from reticent.accounting import Event, Gaussian, RoundOfStream, Unbounded
from reticent.accounting.matrices import toeplitz
from reticent.accounting.matrices.buffered import MOST, Buffered, optimised
from reticent.errors import SettingError, require
from reticent.inside.banded import in_turn
from reticent.inside.draws import Draw, Memory
from reticent.inside.mechanisms import GaussianNoise
from reticent.inside.mixed import MixedQuery, MixedSum, Mixing
from reticent.inside.settings import RoundSettings


@dataclass(frozen=True)
class Buffers:
    """A matrix made by so many buffers, the best for the rounds of the run, by the noise on the weights of SGD.

    An example is in one of `parts` parts, which take part in turn, and so in every round in so many at most.
    """

    buffers: int = 3
    momentum: float = 0.0
    rounds: int = 0
    """For how many rounds, and in how many parts; the plan says both."""
    parts: int = 0
    own: ClassVar[float] = 1.0
    kept_in: ClassVar[torch.dtype | None] = torch.float64

    def __post_init__(self) -> None:
        require(1 <= self.buffers <= MOST and self.buffers == int(self.buffers), f"buffers are 1 to {MOST}")
        require(0 <= self.momentum < 1, f"momentum is 0 or more and below 1, not {self.momentum}")

    @property
    def matrix(self) -> Buffered:
        """The buffers themselves."""
        if self.rounds < 1 or self.parts < 1:
            raise SettingError("the best buffers are those of so many rounds, which the plan of a run knows")
        return optimised(self.buffers, self.rounds, self.parts, self.momentum)

    @property
    def numbers(self) -> tuple[float, ...]:
        """Decays and weights."""
        return *self.matrix.decays, *self.matrix.weights

    @property
    def weights(self) -> tuple[float, ...]:
        """Of the buffers."""
        return self.matrix.weights

    @property
    def sensitivity(self) -> float:
        """Of all rounds together: the worst there is for an example in one of the parts; infinite, if unplanned."""
        return math.inf if self.rounds < 1 else _sensitivity(self.matrix, self.rounds, self.parts)

    @property
    def told_in(self) -> int:
        """All rounds."""
        return max(1, self.rounds)

    def after(self, before: Tensor, latest: Tensor) -> Tensor:
        """Every buffer decays, and the latest sum is added to it."""
        decays = torch.tensor(self.matrix.decays, dtype=before.dtype, device=before.device)
        return decays[:, None] * before + latest.to(before.dtype)

    def expected(self, settings: RoundSettings) -> float:
        """A part of the examples."""
        return settings.size / self.parts

    def planned(self, size: int, batch_size: float, rounds: int) -> Buffers:
        """For so many rounds, with parts that are no larger than a batch."""
        return replace(self, rounds=rounds, parts=parts_of(size, batch_size))


def parts_of(size: int, batch_size: float) -> int:
    """As many parts as it takes for them to be no larger than a batch, on the mean.

    >>> parts_of(1437, 60), parts_of(200, 40), parts_of(100, 70)
    (24, 5, 2)
    """
    return max(1, math.ceil(size / batch_size * (1 - 1e-12)))  # a quotient may be rounded up


@lru_cache(maxsize=256)
def _sensitivity(matrix: Buffered, rounds: int, parts: int) -> float:
    return toeplitz.sensitivity(matrix.column(rounds), parts) * (1 + 1e-9)  # for the rounding of this very sum


@dataclass(frozen=True)
class PartsInTurn:
    """Each example is in one of the parts by a coin that is thrown once; everybody of a part takes part in its turn."""

    mixing: Buffers

    def draw(self, settings: RoundSettings, population: int, rng: np.random.Generator, memory: Memory) -> Draw:
        """Those of the part whose turn it is."""
        return Draw(in_turn(self.mixing.parts, settings.number, population, rng, memory), self, settings)

    def amplify(self, event: Event, settings: RoundSettings) -> Event:
        """One round of the stream, which is paid for as a whole; that chance chose the parts makes nothing cheaper."""
        if isinstance(event, Unbounded):
            return event
        if not isinstance(event, Gaussian):
            return Unbounded(f"nothing is proved of {type(event).__name__} on sums that are mixed over rounds")
        if settings.number >= self.mixing.rounds:
            return Unbounded(f"the stream was planned for {self.mixing.rounds} rounds")
        return RoundOfStream(settings.number, self.mixing.rounds, event)

    def serves(self, query: object) -> bool:
        """Sums that are mixed by the same buffers, made for the same parts and rounds."""
        rule = query.rule if isinstance(query, MixedQuery) else query
        return isinstance(rule, MixedSum) and rule.mixing == self.mixing


@dataclass(frozen=True)
class StreamNoise:
    """Normal noise that is declared beside what one gradient can add to one answer, and charged beside all of them."""

    mixing: Mixing

    def __call__(self, noise_multiplier: float) -> GaussianNoise:
        """As large as all answers together can be moved, so many times less.

        >>> StreamNoise(Buffers(rounds=10, parts=10))(2.0).noise_multiplier < 2.0
        True
        """
        return GaussianNoise(noise_multiplier / self.mixing.sensitivity)
