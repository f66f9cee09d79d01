"""Intervals: how sure a measured rate or area is."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, ndtr, ndtri

Floats = npt.NDArray[np.float64]


def rates_at_most(hits: npt.ArrayLike, trials: int, alpha: float) -> Floats:
    """Clopper-Pearson upper bounds: each true rate is larger with chance at most `alpha`.

    >>> rates_at_most([0, 100], 100, 0.05).round(4)
    array([0.0295, 1.    ])
    """
    found = np.asarray(hits)
    bound = betaincinv(found + 1, np.maximum(trials - found, 1), 1 - alpha)
    return np.where(found >= trials, 1.0, bound)


def rates_at_least(hits: npt.ArrayLike, trials: int, alpha: float) -> Floats:
    """Clopper-Pearson lower bounds: each true rate is smaller with chance at most `alpha`.

    >>> rates_at_least([0, 100], 100, 0.05).round(4)
    array([0.    , 0.9705])
    """
    return 1 - rates_at_most(trials - np.asarray(hits), trials, alpha)


def rate_at_most(hits: int, trials: int, alpha: float) -> float:
    """The upper bound of `rates_at_most` for one rate."""
    return float(rates_at_most(hits, trials, alpha))


def rate_at_least(hits: int, trials: int, alpha: float) -> float:
    """The lower bound of `rates_at_least` for one rate."""
    return float(rates_at_least(hits, trials, alpha))


def rate_between(hits: int, trials: int, alpha: float = 0.05) -> tuple[float, float]:
    """The two-sided Clopper-Pearson interval, half of `alpha` for each end.

    >>> [round(end, 3) for end in rate_between(5, 10)]
    [0.187, 0.813]
    """
    return rate_at_least(hits, trials, alpha / 2), rate_at_most(hits, trials, alpha / 2)


def bca_interval(value: float, resampled: Floats, pulls: tuple[Floats, ...], alpha: float) -> tuple[float, float]:
    """The bias-corrected, accelerated bootstrap interval (Efron 1987).

    `pulls` are the jackknife influences of each sample: how far leaving one observation out moves the statistic.
    """
    below = (np.mean(resampled < value) + np.mean(resampled <= value)) / 2
    if not 0 < below < 1:  # every resample says the same: there is nothing to correct
        return float(resampled.min()), float(resampled.max())
    bias = float(ndtri(below))
    cubes = sum(float((pull**3).sum()) / len(pull) ** 3 for pull in pulls)
    squares = sum(float((pull**2).sum()) / len(pull) ** 2 for pull in pulls)
    acceleration = cubes / (6 * squares**1.5) if squares else 0.0
    ends = []
    for level in (alpha / 2, 1 - alpha / 2):
        shifted = bias + float(ndtri(level))
        ends.append(float(ndtr(bias + shifted / (1 - acceleration * shifted))))
    low, high = np.quantile(resampled, ends)
    return (float(low), float(high)) if math.isfinite(low + high) else (value, value)
