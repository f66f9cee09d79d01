"""Draws: who takes part in a round, and what drawing so does to the price of a release."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from reticent.accounting import Event, Subsampled
from reticent.inside.settings import RoundSettings

Memory = dict[str, Tensor]
"""What the vault remembers of each example between rounds: private."""


@dataclass(frozen=True, eq=False)
class Draw:
    """Who takes part: secret, and handed out closed."""

    _index: NDArray[np.int64] = field(repr=False)
    sampler: Sampler
    settings: RoundSettings = field(repr=False)
    _others: tuple[NDArray[np.int64], ...] = field(default=(), repr=False)
    """Other draws that could have been made instead; secret too."""

    def amplify(self, event: Event) -> Event:
        """What `event` becomes on a draw like this one."""
        return self.sampler.amplify(event, self.settings)

    def only(self, place: slice) -> Draw:
        """A part of those who take part."""
        return replace(self, _index=self._index[place])


class Sampler(Protocol):
    """Promise: `amplify` describes `draw` at least as badly as it is, for every dataset."""

    def draw(self, settings: RoundSettings, population: int, rng: np.random.Generator, memory: Memory) -> Draw:
        """Choose who takes part of the `population`, the examples there really are: private, unlike settings.size."""
        ...

    def amplify(self, event: Event, settings: RoundSettings) -> Event:
        """What an event on such a draw costs."""
        ...


@runtime_checkable
class Restricted(Protocol):
    """A sampler or a mechanism whose price holds for some queries only."""

    def serves(self, query: object) -> bool:
        """Whether it holds for this query, or for all that this maker of queries makes."""
        ...


@dataclass(frozen=True)
class Poisson:
    """Every example takes part by a coin of its own, with chance batch_size / size (Abadi et al. 2016, section 3.1)."""

    def draw(self, settings: RoundSettings, population: int, rng: np.random.Generator, memory: Memory) -> Draw:  # noqa: ARG002 - all are alike
        """Draw how many, then which: the same law as a coin each, at a cost that does not grow with the size.

        With n coins of chance p, any given k examples are drawn, and no others, with chance p^k (1-p)^(n-k): it depends
        on k alone. So k is binomial, and given k all C(n, k) sets are equally likely; the other way round, a binomial k
        and a uniform set of that size give C(n, k) p^k (1-p)^(n-k) / C(n, k), the same for every set.
        """
        count = rng.binomial(population, settings.rate)
        index = rng.choice(population, count, replace=False, shuffle=False)
        return Draw(np.sort(index), self, settings)

    def amplify(self, event: Event, settings: RoundSettings) -> Event:
        """Sub-sampling makes an event cheaper; with everybody in, it is the event itself."""
        return event if settings.rate == 1 else Subsampled(settings.rate, event)


@dataclass(frozen=True)
class Everyone:
    """Everybody takes part: nothing is amplified."""

    def draw(self, settings: RoundSettings, population: int, rng: np.random.Generator, memory: Memory) -> Draw:  # noqa: ARG002 - nothing is left to chance
        """All examples."""
        return Draw(np.arange(population), self, settings)

    def amplify(self, event: Event, settings: RoundSettings) -> Event:  # noqa: ARG002 - the same at any rate
        """The event itself."""
        return event
