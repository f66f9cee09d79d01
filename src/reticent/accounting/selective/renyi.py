"""Renyi curves of selective release, worst case over all tests: one attempt (route S), one accepted update (route C).

From the theorems of docs/accounting.md to what is computed. P and Q are the laws of an outcome z, r = P/Q, and a test
chooses for every z a point (a, a') of the polygon of corners.py. Let g(t) = t^order - 1 - order (t - 1), never below 0.

1. Theorem S asks, for every x, for the integral over z of the largest of
   P^order Q^(1-order) a'^order a^(1-order) - order x^(order-1) P a' + (order-1) x^order Q a,
   which is x^order Q a g(r a'/(a x)): multiply out. It is convex in (a, a'), so the largest is at a corner.
2. What stands before that integral, order x^(order-1) - (order-1) x^order, is 1 - x^order g(1/x). Hence

   route S   exp((order-1) R) - 1 = sup_x  x^order { E_Q[max over corners a g(r a'/(a x))] - g(1/x) }.

   Both terms are sums of numbers of one sign and of the size of the answer: 1 is never subtracted from nearly 1.
3. Theorem C bounds E_Q of the same terms by a multiple of its tangent at x (certificates.py):

   route C   exp((order-1) R) - 1 = min_x max over tests  E_Q[a g(r a'/(a x))] / E_Q[a (1 + order (r a'/(a x) - 1))].

4. With k = a'/(a x) the rule for g(k r) of remainder.py writes every corner's term with three moments of z that know
   neither x nor the test: g(r), 1 and r - 1 (moments.py). So an x costs three multiplications a corner and node
   (problem.py), and what is left is one dimension: chords.py bounds sup_x, certificates.py searches min_x.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from reticent.accounting.events import SelectiveAttempt
from reticent.accounting.renyi.sampled_gaussian import subsampled_gaussian
from reticent.accounting.selective.certificates import release_excess
from reticent.accounting.selective.chords import attempt_excess
from reticent.accounting.selective.corners import corners
from reticent.accounting.selective.problem import Problem

Array = NDArray[np.float64]

MARGIN = 1 + 1e-4
"""On every divergence, for what quadrature leaves on either side: where the best corner changes the integrand has a
kink, and the sum over nodes errs by the square of their distance. Eight times the nodes changed nothing by more than
1.6e-6 on route C and 7e-7 on route S (noise 0.05 to 10, rates 1e-6 to 1, orders 1.1 to 512)."""


def attempt_curve(attempt: SelectiveAttempt, orders: Array) -> Array:
    """Route S: the divergence of one attempt, rejection seen, rejected candidate hidden.

    >>> fmnist = SelectiveAttempt(2048 / 60000, 2.15, 256 / 60000, 0.1056498, 0.5)
    >>> attempt_curve(fmnist, np.array([4.0])).round(6)
    array([0.000352])
    """
    ceiling = _attempt_ceiling(attempt, orders)
    if attempt.accept_high == 1 or attempt.rate == 0 or not np.isfinite(ceiling).any():
        return ceiling
    return np.minimum(_worst(attempt, orders, attempt_excess), ceiling)


def release_curve(attempt: SelectiveAttempt, orders: Array) -> Array:
    """Route C: the divergence of one accepted update after any number of hidden attempts.

    >>> fmnist = SelectiveAttempt(2048 / 60000, 2.15, 256 / 60000, 0.1056498, 0.5)
    >>> release_curve(fmnist, np.array([4.0])).round(6)
    array([0.00154])
    """
    if attempt.accept_low == 0 or attempt.noise_multiplier == 0:
        return np.full(len(orders), np.inf)
    return np.minimum(_worst(attempt, orders, release_excess), _release_ceiling(attempt, orders))


def _worst(attempt: SelectiveAttempt, orders: Array, log_excess: Callable[[Problem], float]) -> Array:
    """The larger divergence of both directions at each order."""
    found = [max(log_excess(Problem.of(attempt, float(order), sign)) for sign in (1, -1)) for order in orders]
    return np.asarray(MARGIN * np.logaddexp(0, np.array(found)) / (orders - 1))


def _attempt_ceiling(attempt: SelectiveAttempt, orders: Array) -> Array:
    """Releasing the candidate with its bit costs at least as much: the candidate's divergence plus that of the bit."""
    pairs = [pair for corner in corners(attempt) for pair in zip(corner.before, corner.after, strict=True)]
    bits = np.max([_bit(after, before, orders) for before, after in pairs], axis=0)
    return np.asarray(subsampled_gaussian(attempt.rate, attempt.noise_multiplier, orders) + bits)


def _release_ceiling(attempt: SelectiveAttempt, orders: Array) -> Array:
    """Every factor of A B^(order-1) / C^order at its own worst."""
    plain = subsampled_gaussian(attempt.rate, attempt.noise_multiplier, orders)
    tilts = []
    for corner in corners(attempt):
        before, after = np.log(corner.before), np.log(corner.after)
        swing = np.max(orders[:, None] * after + (1 - orders[:, None]) * before, axis=1)
        tilts.append(swing + (orders - 1) * before.max() - orders * after.min())
    return np.asarray(plain + np.max(tilts, axis=0) / (orders - 1))


def _bit(after: float, before: float, orders: Array) -> Array:
    """The divergence of a coin of chance `after` from one of chance `before`."""
    if after == before:
        return np.zeros(len(orders))
    if before in (0, 1):
        return np.full(len(orders), np.inf)
    sides = [
        orders * math.log(new / old) + math.log(old)
        for new, old in ((after, before), (1 - after, 1 - before))
        if new > 0
    ]
    return np.asarray(np.logaddexp.reduce(sides, axis=0) / (orders - 1))
