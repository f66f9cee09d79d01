"""Renyi curve of the Poisson-subsampled Gaussian, accurate down to the smallest rates.

Both parts sum positive terms of A - 1 instead of A, where A = E_Q[(P/Q)^order] is nearly 1: nothing cancels.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlog1py, xlogy

from reticent.accounting.pair import log_absent, log_ratio
from reticent.accounting.remainder import log_remainder

Array = NDArray[np.float64]


def subsampled_gaussian(rate: float, noise_multiplier: float, orders: Array) -> Array:
    """The Renyi divergence of one step at each order (Mironov, Talwar & Zhang 2019, sections 3.2 and 3.3).

    The direction "one record more over one record less" is the larger one (their theorem 5), so it is the curve.

    >>> subsampled_gaussian(2048 / 60000, 1.4, np.array([2.0, 6.0])).round(8)
    array([0.00077522, 0.00261342])
    """
    if rate == 0:
        return np.zeros(len(orders))
    if noise_multiplier == 0:
        return np.full(len(orders), np.inf)
    if rate == 1:
        return orders / 2 / noise_multiplier**2
    whole = orders == np.floor(orders)
    log_excess = np.empty(len(orders))
    if whole.any():
        log_excess[whole] = _log_excess_whole(rate, noise_multiplier, orders[whole])
    if not whole.all():
        log_excess[~whole] = _log_excess_fractional(rate, noise_multiplier, orders[~whole])
    return np.logaddexp(0, log_excess) / (orders - 1)


@lru_cache(maxsize=64)
def _binomial_terms(orders: tuple[float, ...]) -> tuple[NDArray[np.intp], Array, Array, Array]:
    """Where each order's terms start, and for every term: its index, the order minus it, the log of the binomial."""
    counts = [int(order) - 1 for order in orders]
    starts = np.concatenate(([0], np.cumsum(counts)[:-1])).astype(np.intp)
    index = np.concatenate([np.arange(2, order + 1, dtype=float) for order in orders])
    order = np.repeat(orders, counts)
    binomial = gammaln(order + 1) - gammaln(index + 1) - gammaln(order - index + 1)
    return starts, index, order - index, binomial


def _log_excess_whole(rate: float, noise_multiplier: float, orders: Array) -> Array:
    """log(A - 1) by the binomial sum: the terms 0 and 1 have moment exactly 1, so the sum starts at 2."""
    starts, index, rest, binomial = _binomial_terms(tuple(orders))
    exponent = index * (index - 1) / (2 * noise_multiplier**2)
    terms = binomial + xlogy(index, rate) + xlog1py(rest, -rate) + log_expm1(exponent)
    tops = np.maximum.reduceat(terms, starts)
    lengths = np.diff(np.append(starts, len(terms)))
    return np.asarray(tops + np.log(np.add.reduceat(np.exp(terms - np.repeat(tops, lengths)), starts)))


def _log_excess_fractional(rate: float, noise_multiplier: float, orders: Array) -> Array:
    """log(A - 1) by the trapezoid rule on the remainder of P/Q under Q.

    The rule converges exponentially; the step resolves the Gaussian and the branch points at height pi s^2.
    """
    s = noise_multiplier
    step = min(s, s * s) / 2
    nodes = np.arange(-12 * s, orders.max() + 12 * s + step, step)
    terms = log_absent(nodes, s) + math.log(step) + log_remainder(log_ratio(nodes, rate, s), orders[:, None])
    tops = terms.max(axis=1)
    return np.asarray(tops + np.log(np.exp(terms - tops[:, None]).sum(axis=1)))


def log_expm1(x: Array) -> Array:
    """log(exp(x) - 1) for x > 0 without overflow."""
    return np.asarray(x + np.log(-np.expm1(-x)))
