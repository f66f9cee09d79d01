"""Renyi curve of a Gaussian on a draw of fixed size: one example more is one other less, and moves a sum twice as far.

With chance q = batch / size the record is drawn, and takes the place of another. For every divergence of either
direction that costs no more than (1-q) N(0, s^2) + q N(2, s^2) over N(0, s^2), whichever way two datasets differ
(docs/draws.md has the proof). The pair that is as bad in both directions has these laws' losses above 0, their mirror
image below, and the rest of its mass at 0.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, logsumexp

from reticent.accounting.losses.pair import log_absent, log_ratio

Array = NDArray[np.float64]

LEAST_NOISE = 0.25
"""Below it, in units of how far the sum moves, a draw is priced as if everybody took part: never less than it costs."""
NODES, REACH = 12, 12.0
"""Of the Gauss-Legendre rule: nodes in a panel as wide as the shorter of s and s^2, and deviations beyond the order."""
MARGIN = 1 + 1e-6
"""For what the quadrature leaves; against a rule of twice the nodes it is 1e-12 (tests/accounting)."""


def swapped(rate: float, noise_multiplier: float, orders: Array) -> Array:
    """The divergence at each order, larger of both directions; noise in units of one example's bound.

    >>> swapped(1.0, 2.0, np.array([2.0, 8.0]))
    array([1., 4.])
    >>> round(float(swapped(0.1, 2.0, np.array([8.0]))[0]), 2)
    1.38
    """
    if rate == 0 or math.isinf(noise_multiplier):
        return np.zeros(len(orders))
    if noise_multiplier == 0:
        return np.full(len(orders), np.inf)
    if rate == 1 or noise_multiplier / 2 < LEAST_NOISE:
        return 2 * orders / noise_multiplier**2
    return np.array(_swapped(rate, noise_multiplier / 2, tuple(orders.tolist())))


@lru_cache(maxsize=4096)
def _swapped(rate: float, s: float, orders: tuple[float, ...]) -> tuple[float, ...]:
    """With t = log(P/Q) > 0, y = (order - 1) t, a moment less 1 is the integral of (e^y - 1) (e^t - e^-y) under Q."""
    panel = min(s, s * s)
    at, weight = np.polynomial.legendre.leggauss(NODES)
    found = []
    for order in orders:
        starts = 0.5 + panel * np.arange(math.ceil((order + REACH * s) / panel))
        nodes = (starts[:, None] + panel * (at + 1) / 2).reshape(-1)
        log_mass = log_absent(nodes, s) + np.log(np.tile(weight * panel / 2, len(starts)))
        t = log_ratio(nodes, rate, s)
        y = (order - 1) * t
        log_excess = float(logsumexp(log_mass + y + t + np.log(-np.expm1(-y)) + np.log(-np.expm1(-y - t))))
        found.append(MARGIN * float(np.logaddexp(0, log_excess)) / (order - 1))
    return tuple(found)


def cut_short(rate: float, most: int, size: int) -> tuple[float, float]:
    """Of a Poisson draw cut to `most`: the chance that others alone fill it, and an example's to be in it then.

    Given that at least `most` of the others were drawn, who is in is a uniform choice of `most` places, with this
    chance for the one example: that it is in and they are so many, over that they are.

    >>> full, share = cut_short(0.1, 20, 100)
    >>> round(full, 5), share < 0.1
    (0.00174, True)
    """
    full = float(bdtrc(most - 1, size - 1, rate)) if most < size else 0.0
    if not full:
        return 0.0, 0.0
    return full, min(1.0, float(bdtrc(most, size, rate)) * most / (full * size))


def mixed(share: float, one: Array, other: Array, orders: Array) -> Array:
    """The curve of two mechanisms, the second with a chance of `share`, where it is told which it was: moments mix."""
    if share in (0, 1):
        return other if share else one
    logs = np.logaddexp(math.log1p(-share) + (orders - 1) * one, math.log(share) + (orders - 1) * other)
    return np.asarray(np.maximum(logs, 0.0) / (orders - 1))
