"""The privacy loss distribution of the Poisson-subsampled Gaussian, straight from normal probabilities.

The same pessimistic distribution as dp-accounting's connect-the-dots (Doroshenko et al. 2022), vectorised, and built
from the mass of every cell instead of second differences of delta, which drown in rounding on fine grids.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from reticent.accounting.losses.distribution import Loss
from reticent.accounting.losses.pair import log_ratio, where_log_ratio_is

Array = NDArray[np.float64]

TAIL = 10.0
"""Standard deviations beyond which (a chance of 7.7e-24) the noise is counted as revealing everything, or, on the side
of small losses, rounded up onto the grid: a million steps pay 1e-17 of delta for it."""

LARGEST = 700.0
"""The largest exponent that is taken, as doubles end at exp(709). A loss beyond it has no mass that a double could
hold under the other law; what is cut makes a cell's lower end too light, and so moves mass up."""


def gaussian_loss(rate: float, noise_multiplier: float, step: float) -> tuple[Loss, Loss]:
    """The loss distributions of one step when a record is removed and when one is added.

    >>> remove, add = gaussian_loss(0.1, 2.0, 1e-3)
    >>> remove.delta(0.1) > add.delta(0.1) > 0
    True
    """
    lowest, highest = (
        math.floor(end / step) + top for end, top in zip(loss_range(rate, noise_multiplier), (0, 1), strict=True)
    )
    grid = step * np.arange(lowest, highest + 1, dtype=np.float64)
    place = where_log_ratio_is(grid, rate, noise_multiplier)
    absent = _between(place / noise_multiplier)
    present = (1 - rate) * absent + rate * _between((place - 1) / noise_multiplier)
    removed = split(present, absent * safe_exp(grid[:-1]), step)
    added = split(absent[::-1], (present * safe_exp(-grid[1:]))[::-1], step)
    below = float((1 - rate) * ndtr(place[0] / noise_multiplier) + rate * ndtr((place[0] - 1) / noise_multiplier))
    above = float(ndtr(-place[-1] / noise_multiplier))
    removed[0] += below  # less loss than the grid has: rounded up onto it
    added[0] += above
    return (
        Loss(step, lowest, removed, float(ndtr((1 - place[-1]) / noise_multiplier)) + above),
        Loss(step, -highest, added, float(ndtr(place[0] / noise_multiplier))),
    )


def loss_range(rate: float, noise_multiplier: float) -> tuple[float, float]:
    """The losses between which the noise, cut at `TAIL` deviations, can lead when a record is removed."""
    edges = np.array([-TAIL * noise_multiplier, 1 + TAIL * noise_multiplier])
    low, high = log_ratio(edges, rate, noise_multiplier)
    return float(low), float(high)


def _between(points: Array) -> Array:
    """The standard normal mass between neighbouring points, accurate in both tails."""
    tails = ndtr(-np.abs(points))
    left, right = tails[:-1], tails[1:]
    astride = (points[:-1] < 0) & (points[1:] > 0)
    return np.asarray(np.where(astride, 1 - left - right, np.abs(left - right)))


def split(mass: Array, floor: Array, step: float) -> Array:
    """Move each cell's mass to its two ends, keeping its mass under both hypotheses.

    `floor` is what the mass would be if all its loss were that of the lower end.
    """
    upper = np.clip((mass - floor) / -math.expm1(-step), 0.0, mass)
    ends = np.zeros(len(mass) + 1)
    ends[:-1] += mass - upper
    ends[1:] += upper
    return ends


def safe_exp(exponents: Array) -> Array:
    """exp without overflow."""
    return np.asarray(np.exp(np.minimum(exponents, LARGEST)))
