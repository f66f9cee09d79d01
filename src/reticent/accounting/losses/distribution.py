"""Privacy loss distributions on a grid, composed all at once in frequency space; every rounding goes up.

A composition costs one Fourier transform an event, whatever the count; dp-accounting convolves pair by pair. The
transform is periodic: what lies outside the window of grid points is wrapped into it. The window is so wide that this
is next to nothing, by Chernoff bounds from the moments of the losses (Koskela, Jälkö, Prediger & Honkela 2021 bound
their error so); and as wrapped mass may come down at a smaller loss, as much and more is counted as infinite besides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import fft

Array = NDArray[np.float64]

TRUNCATED = 1e-15
"""The mass a composition may cut off; ten times that is counted as infinite loss. Each end of the window leaves out a
quarter of it at most, and the transforms of a few steps err by less than 1e-15."""

ROUNDING = 4e-17
"""What every composed step is granted for rounding, counted as infinite loss too: a spectrum near 1 in modulus, to the
power of the count, errs by the count times some 1e-17. Against the closed form of the Gaussian the tail of delta was
short by at most 1.4e-17 a step (300 random settings, up to a million steps)."""

SPARE = 1e-23
"""Mass at either end that is not worth its grid points: the low end is rounded up, the high end counted as infinite.
It is what `TAIL` of gaussian.py leaves out as well."""

NEGLIGIBLE = 50.0
"""Losses so far above a value weigh exp(-50) = 2e-22 in its delta's second sum, which is subtracted: leaving them out
raises delta."""

BLOCKS, TILTS = 256, 30
"""How coarse a law stands in for a loss in the Chernoff bounds, and how many bounds are tried. Merging spreads mass, so
that moments come out larger, and every tilt proves its bound: fewer of either would only widen the window."""


@dataclass(frozen=True, eq=False)
class Loss:
    """The law of the privacy loss: `mass[i]` at (lowest + i) * step, and `infinite` at infinity."""

    step: float
    lowest: int
    mass: Array
    infinite: float

    @property
    def values(self) -> Array:
        """The losses that carry mass."""
        return self.step * np.arange(self.lowest, self.lowest + len(self.mass), dtype=np.float64)

    @cached_property
    def trimmed(self) -> Loss:
        """The same loss without its negligible ends."""
        return trim(self)

    @cached_property
    def sketch(self) -> tuple[Array, Array]:
        """Values and masses of a coarser law whose exponential moments are at least the true ones."""
        return _sketch(self)

    def delta(self, epsilon: float) -> float:
        """The hockey-stick divergence at `epsilon`."""
        start = max(0, math.floor(epsilon / self.step) - self.lowest)
        above = self.values[start:] - epsilon
        return float(self.infinite - np.expm1(-np.maximum(above, 0.0)) @ self.mass[start:])

    def deltas(self) -> Array:
        """The hockey-stick divergence at every value of the grid."""
        above = np.cumsum(self.mass[::-1])[::-1] - self.mass
        return np.asarray(self.infinite + np.maximum(above - self._shrunk(), 0.0))

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon, 0 or more, whose hockey-stick divergence is at most `delta`."""
        if self.infinite > delta:
            return math.inf
        if self.delta(0.0) <= delta:
            return 0.0
        first = int(np.argmax(self.deltas() <= delta))  # the last value has delta == infinite: there is one
        above = self.infinite + float(self.mass[first:].sum())
        shrunk = float(self.mass[first] + self._shrunk()[first])
        # below the first such value delta is above - exp(epsilon - value) * shrunk
        return max(0.0, self.step * (self.lowest + first) + math.log((above - delta) / shrunk))

    def _shrunk(self) -> Array:
        """At every value v: the mass above it, each loss l weighted by exp(v - l)."""
        found, reach = self.mass.copy(), 1
        while reach < len(found) and self.step * reach < NEGLIGIBLE:  # sums over 1, 2, 4, ... neighbours
            found[:-reach] += math.exp(-self.step * reach) * found[reach:]
            reach *= 2
        return np.asarray(found - self.mass)


class LibraryPmf(Protocol):
    """What is read of a dp-accounting PLDPmf."""

    def to_dense_pmf(self) -> DensePmf:
        """The same with an array of masses."""


class DensePmf(Protocol):
    """What is read of a dp-accounting DensePLDPmf."""

    _probs: Array
    _discretization: float
    _lower_loss: int
    _infinity_mass: float


def from_library(pmf: LibraryPmf) -> Loss:
    """The distribution of a dp-accounting PLDPmf, read without its dictionaries."""
    dense = pmf.to_dense_pmf()
    support = np.flatnonzero(dense._probs)
    first, last = (int(support[0]), int(support[-1])) if len(support) else (0, 0)
    mass = np.asarray(dense._probs[first : last + 1], dtype=float)
    return Loss(dense._discretization, int(dense._lower_loss) + first, mass, float(dense._infinity_mass))


def from_atoms(values: Sequence[float], masses: Sequence[float], step: float) -> Loss:
    """A few losses with their masses, each moved to the two grid points beside it, keeping its mass under both laws.

    >>> from_atoms([0.25], [1.0], 0.1).delta(0.0) >= 1 - math.exp(-0.25)
    True
    """
    places = [math.floor(value / step) for value in values]
    lowest = min(places)
    mass = np.zeros(max(places) + 2 - lowest)
    for value, weight, place in zip(values, masses, places, strict=True):
        upper = min(1.0, max(0.0, math.expm1(step * place - value) / math.expm1(-step)))
        mass[place - lowest : place - lowest + 2] += weight * np.array([1 - upper, upper])
    return Loss(step, lowest, mass, 0.0)


def compose(losses: Sequence[Loss], counts: Sequence[int]) -> Loss:
    """The loss of `counts[i]` independent copies of each `losses[i]`, all on one grid."""
    parts = [(loss.trimmed, count) for loss, count in zip(losses, counts, strict=True)]
    bottom = sum(loss.lowest * count for loss, count in parts)
    low, high = _window(parts)
    size = fft.next_fast_len(max(high - low + 1, *(len(loss.mass) for loss, _ in parts)), real=True)
    mass = np.roll(fft.irfft(_spectrum(parts, size), size), bottom - low)[: high - low + 1]
    log_finite = sum(count * math.log1p(-loss.infinite) for loss, count in parts)
    lost = 10 * TRUNCATED + ROUNDING * sum(counts)
    return Loss(losses[0].step, low, np.maximum(mass, 0.0), min(1.0, lost - math.expm1(log_finite)))


Spectrum = NDArray[np.complex128]


def _spectrum(parts: Sequence[tuple[Loss, int]], size: int) -> Spectrum:
    """The product of the spectra, each to the power of its count, by squaring: one factor for every binary digit."""
    digits = max(count.bit_length() for _, count in parts)
    factors: list[Spectrum | float] = [1.0] * digits
    for loss, count in parts:
        spectrum = fft.rfft(loss.mass, size)
        for digit in range(count.bit_length()):
            if count >> digit & 1:
                factors[digit] = factors[digit] * spectrum
    product: Spectrum | float = 1.0
    for factor in reversed(factors):
        product = product * product * factor
    return np.asarray(product)


def trim(loss: Loss, spare: float = SPARE) -> Loss:
    """The same loss without outermost masses of at most `spare`: the low ones rounded up, the high ones infinite."""
    rising = np.cumsum(loss.mass)
    falling = np.cumsum(loss.mass[::-1])
    first = min(int(np.searchsorted(rising, spare, side="right")), len(loss.mass) - 1)
    last = max(len(loss.mass) - 1 - int(np.searchsorted(falling, spare, side="right")), first)
    mass = loss.mass[first : last + 1].copy()
    mass[0] += loss.mass[:first].sum()
    return Loss(loss.step, loss.lowest + first, mass, loss.infinite + float(loss.mass[last + 1 :].sum()))


def _window(parts: Sequence[tuple[Loss, int]]) -> tuple[int, int]:
    """Grid indices between which all but `TRUNCATED` of the composed mass lies (Chernoff bounds)."""
    step = parts[0][0].step
    low = sum(loss.lowest * count for loss, count in parts)
    high = sum((loss.lowest + len(loss.mass) - 1) * count for loss, count in parts)
    sketches = [(*loss.sketch, count) for loss, count in parts]
    deviation = math.sqrt(sum(count * _variance(values, mass) for values, mass, count in sketches))
    cut = math.log(4 / TRUNCATED)
    bulk = math.sqrt(2 * cut) / max(deviation, step)  # the best tilt if the sum were Gaussian
    tail = cut / max(step, *(values[-1] - values[0] for values, _, _ in sketches))  # and if one copy alone decided
    tilts = np.geomspace(min(bulk, tail) / 4, max(bulk, tail) * 4, TILTS)
    up = sum(count * _log_moment(values, mass, tilts) for values, mass, count in sketches)
    down = sum(count * _log_moment(values, mass, -tilts) for values, mass, count in sketches)
    high = min(high, math.ceil(np.min((up + cut) / tilts) / step))
    low = max(low, math.floor(np.max(-(down + cut) / tilts) / step))
    return low, max(high, low)


def _sketch(loss: Loss) -> tuple[Array, Array]:
    """A coarser law with the same mean, more spread out: its exponential moments are at least the true ones."""
    block = math.ceil(len(loss.mass) / BLOCKS)
    starts = np.arange(0, len(loss.mass), block)
    mass = np.add.reduceat(loss.mass, starts)
    first = np.add.reduceat(loss.mass * np.arange(len(loss.mass)), starts) - mass * starts
    ends = np.zeros(len(starts) + 1)
    ends[:-1] += mass - first / block
    ends[1:] += first / block
    return loss.step * (loss.lowest + np.append(starts, starts[-1] + block)), np.maximum(ends, 0.0)


def _variance(values: Array, mass: Array) -> float:
    return float(mass @ (values - mass @ values) ** 2)


def _log_moment(values: Array, mass: Array, tilts: Array) -> Array:
    exponents = tilts[:, None] * values
    tops = np.where(mass > 0, exponents, -np.inf).max(axis=1)
    return np.asarray(tops + np.log(np.exp(np.minimum(exponents - tops[:, None], 0.0)) @ mass))
