"""Banded sums: what a round tells goes into the next rounds' answers too, so that their noise can be taken out again.

BandMF (Choquette-Choo et al. 2023) in the form of its proof: the answers are C x + z, with x the rounds' sums, C a
lower triangular matrix with b bands whose columns have length 1, and z fresh noise in every round. Outside, C is
inverted: noise that was put on one round is taken away in the next ones (`Unmixed`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from reticent.accounting import Event, Gaussian, PartInTurn, Subsampled, Unbounded
from reticent.errors import SettingError, require
from reticent.inside.bounds import Bound
from reticent.inside.drawn import Drawn
from reticent.inside.draws import Draw, Memory
from reticent.inside.queries import GradientSum
from reticent.inside.settings import RoundSettings
from reticent.inside.task import Task

PART, SUMS = "part of each example", "last sums"
MOST = 1024
"""The most bands: so many sums are remembered."""


def band(bands: int) -> tuple[float, ...]:
    """The first column of C: the square root of the matrix of prefix sums, cut to so many bands, of length 1.

    Its entries are those of (1 - x)^(-1/2): near the best there is for plain SGD (Kalinin & Lampert 2024).

    >>> [round(one, 3) for one in band(3)]
    [0.848, 0.424, 0.318]
    """
    found = [1.0]
    for place in range(1, bands):
        found.append(found[-1] * (2 * place - 1) / (2 * place))
    length = math.sqrt(math.fsum(one**2 for one in found)) * (1 + 1e-12)
    return tuple(one / length for one in found)


def reach(settings: RoundSettings, bands: int) -> float:
    """The chance of an example to be drawn when its part is in turn: `bands` times the rate, and 1 at most."""
    return min(1.0, bands * settings.rate)


@dataclass(frozen=True)
class Cyclic:
    """Each example is in one of `bands` parts by a coin; rounds draw from the parts in turn, as Poisson does.

    The coins are thrown once, for each example by itself: who else is there changes no example's part.
    """

    bands: int = 8

    def __post_init__(self) -> None:
        require(1 <= self.bands <= MOST and self.bands == int(self.bands), f"bands is 1 to {MOST}, not {self.bands}")

    def draw(self, settings: RoundSettings, population: int, rng: np.random.Generator, memory: Memory) -> Draw:
        """Coins in the part that is in turn."""
        if PART not in memory:
            memory[PART] = torch.from_numpy(rng.integers(self.bands, size=population))
        members = np.flatnonzero(memory[PART].numpy() == settings.number % self.bands)
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
        rule = query.rule if isinstance(query, BandedQuery) else query
        return isinstance(rule, BandedSum) and rule.bands == self.bands


@dataclass(frozen=True)
class BandedSum:
    """Makes the query that mixes the sum of bounded gradients with those of the last rounds."""

    bands: int = 8

    def __call__(self, task: Task, bound: Bound, settings: RoundSettings) -> BandedQuery:
        """The query of one round."""
        return BandedQuery(task, bound, settings, self)


@dataclass(frozen=True, eq=False)
class BandedQuery(GradientSum):
    """The mixture of this round's sum and the last ones, in float64; the sums are remembered inside.

    A round that is asked again is answered alike: its sum has a place of its own in the memory.
    """

    rule: BandedSum
    _known: dict[str, Memory] = field(default_factory=dict, repr=False)
    """Where the memory is; shared by all copies of the query."""

    @property
    def sensitivity(self) -> float:
        """What the bound promises: an example's part of all the rounds that it is mixed into, at right angles.

        Each of them is rounded to a grain, which moves all together by the root of their number times as much.
        """
        return self.bound.sensitivity(self.settings) * (1 + math.sqrt(self.rule.bands) * 2.0**-12)

    def answer(self, drawn: Drawn) -> Tensor:
        """The mixture."""
        return self.whole(self.part(drawn))

    def part(self, drawn: Drawn) -> Tensor:
        """The sum of this round, for a share of the draw."""
        sampler = drawn.draw.sampler
        if not (isinstance(sampler, Cyclic) and sampler.serves(self)):
            raise SettingError(f"{self.rule} is charged on draws of Cyclic({self.rule.bands}), not of {sampler}")
        self._known["memory"] = drawn.memory
        return GradientSum.answer(self, drawn)

    def whole(self, total: Tensor) -> Tensor:
        """This round's sum with the last ones, each times its entry of C."""
        memory, bands, number = self._known["memory"], self.rule.bands, self.settings.number
        if SUMS not in memory:
            memory[SUMS] = torch.zeros(bands, len(total), dtype=total.dtype, device=total.device)
        memory[SUMS][number % bands] = total
        weights = band(bands)
        mixed = torch.zeros_like(total, dtype=torch.float64)
        for ago in range(min(bands, number + 1)):
            mixed += weights[ago] * memory[SUMS][(number - ago) % bands].to(mixed)  # a resumed run has them on the CPU
        return mixed
