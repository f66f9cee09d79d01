"""The privacy loss distribution of a Gaussian in one of b rounds that chance has chosen, without any chance in it.

With U = P/Q of renyi/allocated.py, every hockey stick is E_Q of a convex function of U, either way round: (U - e^ε)_+
and (1 - e^ε U)_+. U is the mean of b independent lognormal numbers; each of them is spread over a grid so that its mean
stays, which makes it larger in the convex order, and sums keep that order. So the sum of spread numbers, one Fourier
transform to the power b, is a pair that dominates.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import fft
from scipy.special import ndtr

from reticent.accounting.losses.distribution import Loss

Array = NDArray[np.float64]

FINE = 0.02
"""The step of the grid, in deviations of a lognormal number, or in units of its mean, whichever is less."""
CUT = 1e-13
"""The mass, under the law in which it is larger, that may lie beyond the largest number and beyond the largest sum; it
counts as infinite loss."""
MOST_POINTS = 2**22
"""Of the grid; where more would be needed (little noise) there is no distribution, and Renyi divergences have to do."""
ROUNDED = 8 * 2.0**-52
"""By how much a spectrum may be off, for each round that it is multiplied with."""


def reach(noise_multiplier: float) -> float:
    """The largest lognormal number that is told apart: above it lies `CUT` of its mean."""
    return math.exp(min(1 / (2 * noise_multiplier**2) + 7.35 / noise_multiplier, 100.0))


def points(rounds: int, noise_multiplier: float) -> float:
    """How many points the grid has, roughly."""
    return (rounds + 4 * reach(noise_multiplier)) / _step(noise_multiplier)


def _step(s: float) -> float:
    return FINE * min(1.0, math.sqrt(math.expm1(min(1 / s**2, 50.0))))


def allocated_loss(rounds: int, noise_multiplier: float, step: float) -> tuple[Loss, Loss]:
    """The loss distributions of one epoch when a record is removed and when one is added.

    >>> remove, add = allocated_loss(10, 2.0, 1e-3)
    >>> remove.delta(0.1) > add.delta(0.1) > 0
    True
    """
    h, one = _spread(noise_multiplier)
    size = fft.next_fast_len(math.ceil(_window(one, h, rounds) / h) + 1, real=True)
    spectrum = fft.rfft(one, size) ** rounds
    absent: Array = np.maximum(fft.irfft(spectrum, size), 0.0)
    u: Array = np.arange(size, dtype=np.float64) * (h / rounds)
    off = rounds * ROUNDED * math.log2(size) * float(np.abs(spectrum).mean())
    present: Array = u * absent
    lost = off * float(u.sum()) + 10 * CUT
    removed = _on_grid(np.log(u[1:]), present[1:], step)
    added = _on_grid(-np.log(u[1:]), absent[1:], step)
    return (
        Loss(step, *removed, min(1.0, max(0.0, 1 - float(removed[1].sum())) + lost)),
        Loss(step, *added, min(1.0, max(0.0, 1 - float(added[1].sum())) + off * size + 10 * CUT)),
    )


def _spread(s: float) -> tuple[float, Array]:
    """The step and the masses of one lognormal number on a grid: each cell's mass at its two ends, with its mean."""
    h = _step(s)
    ends = h * np.arange(math.ceil(reach(s) / h) + 1)
    with np.errstate(divide="ignore"):
        logs = np.log(ends)
    mass, first = (np.diff(ndtr(s * logs + shift / (2 * s))) for shift in (1, -1))
    upper = np.clip((first - ends[:-1] * mass) / h, 0.0, mass)
    found = np.zeros(len(ends))
    found[:-1] += mass - upper
    found[1:] += upper
    found[-1] += float(ndtr(-(s * logs[-1] + 1 / (2 * s))))  # cut to the largest; what it was more is lost
    return h, found


def _window(one: Array, h: float, rounds: int) -> float:
    """A sum beyond which, weighed by itself, `CUT` of the mass lies at most (Chernoff)."""
    values = h * np.arange(len(one))
    best = math.inf
    for tilt in np.geomspace(0.1, 60, 24) / values[-1]:
        weighed = one * np.exp(tilt * values)
        log_moment = (rounds - 1) * math.log(weighed.sum()) + math.log(weighed @ values)
        best = min(best, (log_moment - math.log(CUT)) / tilt)
    return best


def _on_grid(losses: Array, mass: Array, step: float) -> tuple[int, Array]:
    """Masses at losses, each moved to the two points of the grid beside it, keeping its mass under both laws."""
    places = np.floor(losses / step)
    upper = np.clip(np.expm1(step * places - losses) / math.expm1(-step), 0.0, 1.0)
    lowest = int(places.min())
    index = (places - lowest).astype(np.int64)
    size = int(index.max()) + 2
    found = np.zeros(size)
    np.add.at(found, index, mass * (1 - upper))
    np.add.at(found, index + 1, mass * upper)
    return lowest, found
