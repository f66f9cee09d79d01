"""Mechanisms: the noise that opens a sealed answer, and the event it stands for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor

from reticent.accounting import Event, Gaussian, Unbounded
from reticent.errors import SettingError, require
from reticent.inside.lattice import Lattice
from reticent.inside.queries import LossGain
from reticent.inside.randomness import Streams
from reticent.inside.sealed import Sealed


class Mechanism(Protocol):
    """Promise: `event` describes `_open` at least as badly as it is."""

    def event(self) -> Event:
        """What an answer of a full draw, opened so, costs."""
        ...

    def _open(self, sealed: Sealed, place: Streams) -> Tensor:
        """The noisy answer; only the vault's door calls this."""
        ...


@dataclass(frozen=True)
class GaussianNoise:
    """Normal noise of standard deviation `noise_multiplier` x sensitivity on every coordinate, on a lattice."""

    noise_multiplier: float
    by_block: ClassVar[bool] = True
    """Of a long answer each rank has, and noises, its own blocks; other mechanisms are given the whole."""

    def __post_init__(self) -> None:
        require(
            0 <= self.noise_multiplier < math.inf,
            f"noise_multiplier must be 0 or more and finite, not {self.noise_multiplier}",
        )

    def event(self) -> Event:
        """A Gaussian release, or nothing provable without noise."""
        if self.noise_multiplier == 0:
            return Unbounded("an answer was released without noise")
        return Gaussian(self.noise_multiplier)

    def _open(self, sealed: Sealed, place: Streams) -> Tensor:
        bound = sealed.sensitivity * sealed.slack
        if self.noise_multiplier == 0:
            return place.ranks.whole(sealed._value).clone()
        if not 0 < bound < math.inf:
            raise SettingError(
                f"there is no noise for a sensitivity of {sealed.sensitivity}: it must be above 0, finite"
            )
        lattice = Lattice.of(sensitivity=bound, std=self.noise_multiplier * bound, size=sealed._value.numel())
        return lattice.noised(sealed._value, place)


@dataclass(frozen=True)
class AcceptanceCoin:
    """A coin whose chance goes smoothly from `low` to `high` with a sum of gains, each within one unit.

    One gain moves the logarithm of the chance by at most `influence`. Priced only as part of a selective attempt.
    """

    low: float
    high: float
    influence: float

    def __post_init__(self) -> None:
        require(0 < self.low <= self.high <= 1, f"0 < low <= high <= 1 must hold, not {self.low} and {self.high}")
        require(0 <= self.influence < math.inf, f"influence must be 0 or more and finite, not {self.influence}")

    def serves(self, query: object) -> bool:
        """Sums of gains, each within one unit."""
        return query is LossGain or isinstance(query, LossGain)

    def event(self) -> Event:
        """Nothing is proved for the coin by itself."""
        return Unbounded("an acceptance coin was released outside a selective attempt")

    def chance(self, gains: float) -> float:
        """The chance to be kept: half-way (in logarithm) at no gain.

        >>> coin = AcceptanceCoin(0.25, 1.0, 0.1)
        >>> coin.chance(0.0), coin.chance(-1e9), round(coin.chance(1e9), 6)
        (0.5, 0.25, 1.0)
        """
        span = math.log(self.high / self.low)
        return self.low * math.exp(min(max(span / 2 + self.influence * gains, 0.0), span))

    def _open(self, sealed: Sealed, place: Streams) -> Tensor:
        kept = place.stream(0).random() < self.chance(float(sealed._value) / sealed.slack)
        return torch.tensor(1.0 if kept else 0.0)


def normal_like(value: Tensor, rng: np.random.Generator) -> Tensor:
    """Standard normal noise of the value's shape; drawn in float64 for float64 values, else in float32.

    Not by torch: none of two billion of its float32 normals on a CPU lies beyond 5.77, where sixteen should.
    """
    kind = np.float64 if value.dtype == torch.float64 else np.float32
    return torch.from_numpy(rng.standard_normal(tuple(value.shape), dtype=kind)).to(value.device, value.dtype)
