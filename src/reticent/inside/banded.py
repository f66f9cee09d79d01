"""Bands: an example is told of in b rounds at a time, and drawn in one of b (BandMF, Choquette-Choo et al. 2023)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from reticent.accounting import Event, Gaussian, PartInTurn, Subsampled, Unbounded
from reticent.accounting.matrices.banded import optimised, square_root
from reticent.errors import SettingError, UnknownName, require
from reticent.inside.draws import Draw, Memory
from reticent.inside.mixed import MixedQuery, MixedSum
from reticent.inside.settings import RoundSettings

PART = "part of each example"
MOST = 1024
"""The most bands: so many sums are remembered."""
MATRICES = ("optimised", "square-root")


def reach(settings: RoundSettings, bands: int) -> float:
    """The chance of an example to be drawn when its part is in turn: `bands` times the rate, and 1 at most."""
    return min(1.0, bands * settings.rate)


def in_turn(parts: int, number: int, population: int, rng: np.random.Generator, memory: Memory) -> np.ndarray:
    """Who is in the part whose turn it is; parts are thrown once, for each example by itself.

    Who else is there changes no example's part.
    """
    if PART not in memory:
        memory[PART] = torch.from_numpy(rng.integers(parts, size=population))
    return np.flatnonzero(memory[PART].numpy() == number % parts)


@dataclass(frozen=True)
class Bands:
    """A matrix with so many bands and columns of length 1, which go into no more than so many answers.

    It is the best for the rounds of the run, by the noise on the weights that plain SGD, or one with momentum, makes of
    it; or the square root of the matrix of prefix sums, cut short, which needs no rounds.
    """

    bands: int = 8
    matrix: str = "optimised"
    momentum: float = 0.0
    rounds: int = 0
    """For how many rounds; the plan says it."""
    sensitivity: ClassVar[float] = 1.0
    kept_in: ClassVar[torch.dtype | None] = None

    def __post_init__(self) -> None:
        require(1 <= self.bands <= MOST and self.bands == int(self.bands), f"bands is 1 to {MOST}, not {self.bands}")
        if self.matrix not in MATRICES:
            raise UnknownName("matrix", self.matrix, MATRICES)
        require(0 <= self.momentum < 1, f"momentum is 0 or more and below 1, not {self.momentum}")

    @property
    def numbers(self) -> tuple[float, ...]:
        """The first column."""
        if self.matrix == "square-root":
            return square_root(self.bands)
        if self.rounds < 1:
            raise SettingError("the best matrix is that of so many rounds, which the plan of a run knows")
        return optimised(self.bands, self.rounds, self.momentum)

    @property
    def own(self) -> float:
        """Of the round itself."""
        return self.numbers[0]

    @property
    def weights(self) -> tuple[float, ...]:
        """Of the last sums, the latest first."""
        return self.numbers[1:]

    @property
    def told_in(self) -> int:
        """As many rounds as there are bands."""
        return self.bands

    def after(self, before: Tensor, latest: Tensor) -> Tensor:
        """The last sums, the latest first."""
        return torch.cat([latest[None].to(before.dtype), before])[: self.bands - 1]

    def expected(self, settings: RoundSettings) -> float:
        """Of one part of the examples."""
        return reach(settings, self.bands) * settings.size / self.bands

    def planned(self, size: int, batch_size: float, rounds: int) -> Bands:  # noqa: ARG002 - the same for all sizes
        """For so many rounds."""
        return replace(self, rounds=rounds if self.matrix == "optimised" else 0)


@dataclass(frozen=True)
class Cyclic:
    """Each example is in one of `bands` parts by a coin; rounds draw from the parts in turn, as Poisson does."""

    bands: int = 8

    def __post_init__(self) -> None:
        require(1 <= self.bands <= MOST and self.bands == int(self.bands), f"bands is 1 to {MOST}, not {self.bands}")

    def draw(self, settings: RoundSettings, population: int, rng: np.random.Generator, memory: Memory) -> Draw:
        """Coins in the part that is in turn."""
        members = in_turn(self.bands, settings.number, population, rng, memory)
        drawn = members[rng.random(len(members)) < reach(settings, self.bands)]
        return Draw(drawn, self, settings)

    def amplify(self, event: Event, settings: RoundSettings) -> Event:
        """What the round, and those that its sum is mixed into, tell of the part in turn; of others, nothing.

        That they tell no more together than one of them would takes normal noise, whose squares add up over rounds.
        """
        if not isinstance(event, Gaussian):
            why = f"nothing is proved of {type(event).__name__} on sums that are mixed over rounds"
            return event if isinstance(event, Unbounded) else Unbounded(why)
        rate = reach(settings, self.bands)
        inner = event if rate == 1 else Subsampled(rate, event)
        return PartInTurn(settings.number % self.bands, self.bands, inner)

    def serves(self, query: object) -> bool:
        """Sums that are mixed over no more rounds than there are parts, and so tell of a part once in a turn."""
        rule = query.rule if isinstance(query, MixedQuery) else query
        return isinstance(rule, MixedSum) and isinstance(rule.mixing, Bands) and rule.mixing.bands == self.bands
