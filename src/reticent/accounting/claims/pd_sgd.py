"""PD-SGD's plausible deniability: how far apart two batch gradients may lie and still vouch for each other. Not DP.

d is the SQUARED distance of two batch gradients, sigma the noise's standard deviation, gamma the width of the test. All
depends on u = sqrt(d) / sigma and gamma only.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr, ndtri

from reticent.errors import SettingError

Array = NDArray[np.float64]


def pass_chance(distance: float, sigma: float, gamma: float) -> float:
    """q(d): the chance that a batch at squared distance d passes the test (PD-SGD, lemma 1).

    >>> round(pass_chance(4.0, 1.0, 1.0), 6), pass_chance(0.0, 1.0, 1.0)
    (0.24173, 1.0)
    """
    _check(sigma, gamma)
    return math.exp(_log_chance(math.sqrt(distance) / sigma, gamma)) if distance > 0 else 1.0


def _log_chance(u: float, gamma: float) -> float:
    """log(Phi(u/2 + gamma/u) - Phi(u/2 - gamma/u)), from whichever tail is small."""
    high, low = u / 2 + gamma / u, u / 2 - gamma / u
    if low > 0:
        upper, lower = float(log_ndtr(-low)), float(log_ndtr(-high))
        return upper + math.log1p(-math.exp(lower - upper))
    return math.log(float(ndtr(high) - ndtr(low)))


def reach(chance: float, gamma: float) -> float:
    """u*: the distance in units of sigma at which the chance to pass has fallen to `chance`.

    >>> round(reach(0.05, 4.0), 6)
    4.908969
    """
    if not 0 < chance < 1:
        raise SettingError(f"the chance to pass is {chance}: it must lie between 0 and 1")
    _check(1.0, gamma)
    z = float(-ndtri(chance))
    top = z + math.sqrt(z * z + 2 * gamma)  # dropping the upper tail can only raise the chance: a proved bracket
    target = math.log(chance)
    return float(brentq(lambda u: _log_chance(u, gamma) - target, 1e-9, top * (1 + 1e-9), xtol=1e-13, rtol=1e-14))


def largest_distance(chance: float, sigma: float, gamma: float) -> float:
    """d*: the squared distance at which the chance to pass has fallen to `chance`.

    >>> round(largest_distance(0.05, 0.1, 4.0), 6)
    0.24098
    """
    _check(sigma, gamma)
    return (sigma * reach(chance, gamma)) ** 2


def upper_bound(distance: float, sigma: float, gamma: float) -> float:
    """A closed form above q(d), for d > 2 sigma^2 gamma (PD-SGD, lemma 2).

    >>> round(upper_bound(4.0, 1.0, 1.0), 6)
    0.644353
    """
    _check(sigma, gamma)
    d, width = distance, 2 * sigma**2 * gamma
    if d <= width:
        raise SettingError(f"the bound needs a squared distance above 2 sigma^2 gamma = {width:g}, not {d:g}")
    near = math.exp(gamma / 2) / (d - width)
    far = (d + width) * math.exp(-gamma / 2) / ((d + width) ** 2 + 4 * sigma**2 * d)
    return math.sqrt(2 * d / math.pi) * sigma * (near - far) * math.exp(-(d**2 + width**2) / (8 * d * sigma**2))


def simple_bound(distance: float, sigma: float, gamma: float, f: float) -> float:
    """A simpler closed form (PD-SGD, corollary 1), for d >= 2 sigma^2 gamma / f and, missing there, d >= 4 sigma^2.

    >>> round(simple_bound(16.0, 1.0, 1.0, 1 / 8), 6)
    0.041833
    """
    _check(sigma, gamma)
    d = distance
    if not (0 < f < 1 and d >= 2 * sigma**2 * gamma / f * (1 - 1e-12) and d >= 4 * sigma**2):
        raise SettingError("corollary 1 needs 0 < f < 1, d >= 2 sigma^2 gamma / f and d >= 4 sigma^2")
    scale = math.exp(-(d / (8 * sigma**2) + gamma**2 * sigma**2 / (2 * d))) / math.sqrt(2 * math.pi * d)
    return scale * 2 * sigma * (math.exp(gamma / 2) / (1 - f) - math.exp(-gamma / 2) / (2 + f))


def width_for(distance: float, chance: float, sigma: float) -> float:
    """gamma: the width at which batches at this squared distance pass with this chance (appendix E, by theory).

    >>> round(width_for(0.24097977, 0.05, 0.1), 4)
    4.0
    """
    _check(sigma, 1.0)
    u = math.sqrt(distance) / sigma
    target = math.log(chance)
    # Without the upper tail the chance is larger: the width that suits it is too narrow, a proved bracket.
    narrow = max(1e-12, u * (u / 2 + float(ndtri(chance))) * (1 - 1e-9))
    return float(brentq(lambda gamma: _log_chance(u, gamma) - target, narrow, u * u / 2 + 40 * u + 1e3, xtol=1e-12))


def _check(sigma: float, gamma: float) -> None:
    if not (sigma > 0 and gamma > 0):
        raise SettingError(f"sigma is {sigma} and gamma is {gamma}: the deniability test needs both above 0")
