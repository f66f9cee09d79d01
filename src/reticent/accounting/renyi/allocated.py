"""Renyi curve of a Gaussian in one of b rounds that chance has chosen (balls in bins; Chua et al. 2025).

The worst pair is P, the mean over rounds t of N(e_t, s^2 I), and Q = N(0, s^2 I) in b dimensions (docs/draws.md has the
proof). Under Q the likelihood ratio U = P/Q is the mean of b independent lognormal numbers L of mean 1, so that both
directions are moments of one sum: E[U^a] and E[U^(1-a)]. No chance is needed to compute them.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from reticent.accounting.renyi.sampled_gaussian import log_expm1

Array = NDArray[np.float64]

HIGHEST = 128
"""The highest order: above it nothing is said."""
LEAST_NOISE = 0.25
"""Below it the round is taken for known: never less than it costs."""
MARGIN = 1 + 1e-6
"""For what quadrature and rounding leave (1e-9 against finer rules, tests/accounting)."""


def allocated(rounds: int, noise_multiplier: float, orders: Array) -> Array:
    """The divergence at each order, larger of both directions: exact at whole orders, chords between them.

    >>> allocated(1, 2.0, np.array([2.0, 8.0]))
    array([0.25, 1.  ])
    >>> bool(allocated(10, 2.0, np.array([2.0]))[0] < 0.03)
    True
    """
    if math.isinf(noise_multiplier):
        return np.zeros(len(orders))
    if noise_multiplier == 0:
        return np.full(len(orders), np.inf)
    if rounds == 1 or noise_multiplier < LEAST_NOISE:
        return orders / 2 / noise_multiplier**2
    moments = np.interp(orders, np.arange(1, HIGHEST + 1), _log_moments(rounds, noise_multiplier), right=np.inf)
    return np.asarray(moments / (orders - 1))


@lru_cache(maxsize=1024)
def _log_moments(rounds: int, s: float) -> Array:
    """The logarithm of the larger moment at orders 1, 2, ..."""
    log_excess = np.maximum(_log_excess_present(rounds, s), _log_excess_absent(rounds, s))
    return np.concatenate([[0.0], MARGIN * np.logaddexp(0, log_excess)])


def _log_excess_present(rounds: int, s: float) -> Array:
    """log(E[U^a] - 1) for a = 2, 3, ...

    E[L^k] = exp(k (k-1) / 2 s^2), so b^a E[U^a] / a! is the coefficient of x^a in f^b, f the sum of E[L^k] x^k / k!.
    With all L = 1 it is that of e^(bx): the difference goes through a power by squaring, in which nothing is negative.
    """
    k = np.arange(HIGHEST + 1, dtype=np.float64)
    plain = -gammaln(k + 1)  # e^x
    with np.errstate(divide="ignore"):
        more = np.where(k < 2, -np.inf, plain + log_expm1(np.maximum(k * (k - 1), 1) / (2 * s * s)))
    done, excess = 0, np.full(HIGHEST + 1, -np.inf)  # of the power so far, and of f to the powers 1, 2, 4, ...
    power, left = 1, rounds
    while left:
        if left & 1:
            excess = _times(done, excess, power, more, k) if done else more
            done += power
        left >>= 1
        if left:
            more, power = _times(power, more, power, more, k), 2 * power
    return np.asarray((excess + gammaln(k + 1) - k * math.log(rounds))[2:])


def _times(one: int, excess: Array, other: int, more: Array, k: Array) -> Array:
    """(e^(mx) + g) (e^(nx) + h) - e^((m+n)x), in logarithms of coefficients."""
    first, second = (k * math.log(count) - gammaln(k + 1) for count in (one, other))
    return np.logaddexp(_product(np.logaddexp(first, excess), more), _product(excess, second))


def _product(one: Array, other: Array) -> Array:
    """The product of two power series, in logarithms of their coefficients."""
    place = np.arange(len(one))
    apart = place[:, None] - place
    terms = np.where(apart >= 0, one + other[apart], -np.inf)
    return np.asarray(logsumexp(terms, axis=1))


STEP, START = 0.05, -25.0
"""Of the trapezoid rule over log x, which errs by exp(-70) at the highest order; what lies before is x^3 or less."""
NEGLIGIBLE = 80.0
"""The logarithm by which what is left out is smaller than the rest."""


def _log_excess_absent(rounds: int, s: float) -> Array:
    """log(E[U^-c] - 1) for c = a - 1 = 1, 2, ...

    U^-c is the integral of x^(c-1) e^(-xU) / Gamma(c), and E[e^(-xU)] = E[e^(-xL/b)]^b. With U = 1 it is 1: what lies
    above is the integral of x^(c-1) e^-x (e^k - 1) / Gamma(c), where k = b log E[e^(-(L-1)x/b)] is never negative.
    """
    c = np.arange(1, HIGHEST)[:, None]
    end = 8.0
    while _log_laplace(np.array([math.exp(end) / rounds]), s)[0] * rounds + HIGHEST * end > -NEGLIGIBLE:
        end += 2.0
    log_x = np.arange(START, end, STEP)
    v = np.exp(log_x) / rounds
    log_excess = np.empty(len(v))  # of e^-x (e^k - 1)
    small = v <= 1
    tilted = rounds * np.log1p(_remainder(v[small], s))
    with np.errstate(divide="ignore"):
        log_excess[small] = log_expm1(np.maximum(tilted, 1e-300)) - np.exp(log_x[small])
        direct = rounds * _log_laplace(v[~small], s)
        log_excess[~small] = direct + np.log(-np.expm1(np.minimum(-np.exp(log_x[~small]) - direct, -1e-16)))
    terms = c * log_x + log_excess + math.log(STEP)
    return np.asarray(logsumexp(terms, axis=1) - gammaln(c[:, 0]))


def _nodes(s: float) -> tuple[Array, Array]:
    """log L and the logarithm of its mass under Q, on the nodes of a trapezoid rule."""
    step = min(s, 1.0) / 4
    z = np.arange(-12.0, 12.0 + 1 / s, step)
    return z / s - 1 / (2 * s * s), -(z**2) / 2 + math.log(step / math.sqrt(2 * math.pi))


def _log_laplace(v: Array, s: float) -> Array:
    """log E[e^(-vL)]."""
    log_l, log_mass = _nodes(s)
    return np.asarray(logsumexp(log_mass - v[:, None] * np.exp(log_l), axis=1))


def _remainder(v: Array, s: float) -> Array:
    """E[e^(-v(L-1)) - 1 + v(L-1)] for v up to 1: never negative, and as E[L] = 1 it is E[e^(-v(L-1))] - 1."""
    log_l, log_mass = _nodes(s)
    y = v[:, None] * np.expm1(log_l)
    near = np.where(np.abs(y) < 1e-2, y, 0.0)
    series = near**2 / 2 * (1 - near / 3 * (1 - near / 4 * (1 - near / 5 * (1 - near / 6))))
    return np.asarray(np.where(np.abs(y) < 1e-2, series, np.expm1(-y) + y) @ np.exp(log_mass))
