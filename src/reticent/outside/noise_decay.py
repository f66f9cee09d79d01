"""Noise decay: less noise as training goes on, by a schedule fixed in advance (Yu et al. 2019)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from reticent.errors import require
from reticent.inside import RoundSettings


@dataclass(frozen=True)
class NoiseDecay:
    """The noise multiplier of an epoch as a share of the first one's; an epoch is 1 / rate rounds.

    `factor` gives the share for epoch t = 0, 1, ...; it depends on nothing else, so the whole schedule is public.
    """

    def turn(self, settings: RoundSettings) -> RoundSettings:
        """The settings of a round, with the noise of its epoch."""
        epoch = math.floor(settings.number * settings.rate + 1e-9)
        return replace(settings, noise_multiplier=settings.noise_multiplier * self.factor(epoch))

    def factor(self, epoch: int) -> float:
        """The share of the first epoch's noise that is left."""
        raise NotImplementedError


@dataclass(frozen=True)
class TimeDecay(NoiseDecay):
    """s0 / (1 + k t).

    >>> round(TimeDecay(0.05).factor(49), 4)
    0.2899
    """

    k: float = 0.05

    def __post_init__(self) -> None:
        require(0 <= self.k < math.inf, f"k must be 0 or more and finite, not {self.k}")

    def factor(self, epoch: int) -> float:
        """1 / (1 + k t)."""
        return 1 / (1 + self.k * epoch)


@dataclass(frozen=True)
class ExponentialDecay(NoiseDecay):
    """s0 exp(-k t).

    >>> round(4 * ExponentialDecay(0.01).factor(49), 6)
    2.450506
    """

    k: float = 0.01

    def __post_init__(self) -> None:
        require(0 <= self.k < math.inf, f"k must be 0 or more and finite, not {self.k}")

    def factor(self, epoch: int) -> float:
        """exp(-k t)."""
        return math.exp(-self.k * epoch)


@dataclass(frozen=True)
class StepDecay(NoiseDecay):
    """s0 k^(t // period).

    >>> round(4 * StepDecay(0.6, 10).factor(49), 4)
    0.5184
    """

    k: float = 0.6
    period: int = 10

    def __post_init__(self) -> None:
        require(0 < self.k <= 1, f"k must be above 0 and at most 1, not {self.k}")
        require(self.period >= 1, f"period must be 1 or more, not {self.period}")

    def factor(self, epoch: int) -> float:
        """k^(t // period)."""
        return float(self.k ** (epoch // self.period))


@dataclass(frozen=True)
class PolynomialDecay(NoiseDecay):
    """(s0 - s_end) (1 - t / period)^k + s_end, where `end` is s_end / s0.

    >>> round(4 * PolynomialDecay(3, 0.5, 100).factor(49), 6)
    2.265302
    """

    k: float = 3.0
    end: float = 0.5
    period: int = 100

    def __post_init__(self) -> None:
        require(0 <= self.k < math.inf, f"k must be 0 or more and finite, not {self.k}")
        require(0 < self.end <= 1, f"end must be above 0 and at most 1, not {self.end}")
        require(self.period >= 1, f"period must be 1 or more, not {self.period}")

    def factor(self, epoch: int) -> float:
        """The polynomial, and `end` from the period's last epoch on."""
        left = max(0.0, 1 - epoch / self.period)
        return float((1 - self.end) * left**self.k + self.end)
