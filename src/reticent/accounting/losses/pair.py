"""The two laws behind every subsampled Gaussian, in units of the clip norm: N(0, s^2) if the record is absent, and with
chance `rate` N(1, s^2) instead if it is present.

They dominate the step: a Markov kernel makes its two laws out of them, whatever the model and the other records are
(docs/accounting.md, the setting; Zhu, Dong & Wang 2022 for Poisson draws of any dominated mechanism). So no divergence
of the step is larger than theirs, in either direction.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

Array = NDArray[np.float64]

LARGE = 30.0
"""Exponents from which on `log_ratio` adds logarithms instead of multiplying: exp(30) does not overflow, and on either
side of it both ways are right to rounding."""


def log_ratio(outcome: Array, rate: float, noise_multiplier: float) -> Array:
    """log(present / absent) at each outcome: increasing, accurate also where it is tiny.

    >>> log_ratio(np.array([0.5]), 0.1, 2.0)
    array([0.])
    """
    exponent = (2 * outcome - 1) / (2 * noise_multiplier**2)
    if rate == 1:
        return np.asarray(exponent)
    value = np.log1p(rate * np.expm1(np.minimum(exponent, LARGE)))
    if np.max(exponent) < LARGE:
        return np.asarray(value)
    return np.asarray(np.where(exponent < LARGE, value, np.logaddexp(math.log1p(-rate), math.log(rate) + exponent)))


def where_log_ratio_is(values: Array, rate: float, noise_multiplier: float) -> Array:
    """The outcome with each log ratio: the inverse of `log_ratio`; -inf below its infimum log(1 - rate).

    >>> where_log_ratio_is(log_ratio(np.array([3.0]), 0.1, 2.0), 0.1, 2.0).round(9)
    array([3.])
    """
    variance = noise_multiplier**2
    if rate == 1:
        return np.asarray(variance * values + 0.5)
    with np.errstate(divide="ignore", invalid="ignore"):
        small = np.log1p(np.maximum(np.expm1(np.minimum(values, 1.0)) / rate, -1.0))
        large = values + np.log1p(-(1 - rate) * np.exp(-np.maximum(values, 1.0))) - math.log(rate)
    return np.asarray(variance * np.where(values < 1, small, large) + 0.5)


def log_absent(outcome: Array, noise_multiplier: float) -> Array:
    """The log density if the record is absent."""
    scaled = outcome / noise_multiplier
    return np.asarray(-(scaled**2) / 2 - math.log(noise_multiplier * math.sqrt(2 * math.pi)))


def total_variation(rate: float, noise_multiplier: float) -> float:
    """How far apart the two laws are.

    >>> round(total_variation(1.0, 1.0), 4)
    0.3829
    """
    return rate * float(2 * ndtr(1 / (2 * noise_multiplier)) - 1)
