"""Draws whose size is limited: batches of a fixed size, and Poisson draws that are cut to a largest one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from reticent.accounting import Event, FixedSize, Subsampled, Truncated
from reticent.errors import SettingError, require
from reticent.inside.draws import Draw, Memory
from reticent.inside.settings import RoundSettings


@dataclass(frozen=True)
class OfFixedSize:
    """As many as the batch size says, drawn without putting back.

    Places are drawn, of which there are as many as was declared, or as there are examples, if they are more; so
    nobody's chance is above batch / size. Where there are fewer examples than places, some drawn places are empty.

    >>> OfFixedSize().draw(RoundSettings(10, 4, 1.0, 1.0), 10, np.random.default_rng(0), {})._index.size
    4
    """

    def draw(self, settings: RoundSettings, population: int, rng: np.random.Generator, memory: Memory) -> Draw:  # noqa: ARG002 - all are alike
        """So many places, all equally likely."""
        places = rng.choice(max(settings.size, population), batch_of(settings), replace=False, shuffle=False)
        return Draw(np.sort(places[places < population]), self, settings)

    def amplify(self, event: Event, settings: RoundSettings) -> Event:
        """One more is one other less, which moves a sum twice as far."""
        return FixedSize(batch_of(settings), settings.size, event)


def batch_of(settings: RoundSettings) -> int:
    """The size of a batch: a whole number."""
    return max(1, round(settings.batch_size))


@dataclass(frozen=True)
class Capped:
    """As Poisson draws; of more than the cap, so many are chosen by chance.

    The cap is `deviations` of a Poisson draw's size above the batch size, or `most`, where that is given.

    >>> Capped().most_of(RoundSettings(1000, 100, 1.0, 1.0))
    157
    """

    most: int | None = None
    deviations: float = 6.0

    def __post_init__(self) -> None:
        require(
            self.most is None or self.most >= 1, f"most is how many may be drawn at most: 1 or more, not {self.most}"
        )
        require(0 <= self.deviations < math.inf, f"deviations is 0 or more and finite, not {self.deviations}")

    def most_of(self, settings: RoundSettings) -> int:
        """The most that are drawn in a round."""
        if self.most is not None:
            return min(self.most, settings.size)
        spread = math.sqrt(settings.batch_size * (1 - settings.rate))
        return min(settings.size, max(1, math.ceil(settings.batch_size + self.deviations * spread)))

    def draw(self, settings: RoundSettings, population: int, rng: np.random.Generator, memory: Memory) -> Draw:  # noqa: ARG002 - all are alike
        """How many, cut to the cap, then which: the same law as coins and a choice among those who were drawn.

        Given how many were drawn, all sets of that size are equally likely, and so are all sets of `most` among them.
        """
        if population > settings.size:
            raise SettingError(
                f"{self} is charged for {settings.size} examples, and there are more: with more of them draws are cut "
                "short more often. Leave out size=, or declare more"
            )
        count = min(int(rng.binomial(settings.size, settings.rate)), self.most_of(settings))
        places = rng.choice(settings.size, count, replace=False, shuffle=False)
        return Draw(np.sort(places[places < population]), self, settings)

    def amplify(self, event: Event, settings: RoundSettings) -> Event:
        """What the cap costs is in the price: it is priced as told when a draw was cut short."""
        if self.most_of(settings) >= settings.size:
            return event if settings.rate == 1 else Subsampled(settings.rate, event)
        return Truncated(settings.rate, self.most_of(settings), settings.size, event)
