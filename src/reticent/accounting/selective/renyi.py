"""Renyi curves of selective release, worst case over all tests: one attempt (route S), one accepted update (route C).

Both suprema run over tests that choose, for every outcome z of the Gaussian pair, a corner of the polygon of
selective.py. Written with the remainder g(t) = t^order - 1 - order (t - 1) they read (x is a ratio of chances):

route S   exp((order-1) R) - 1 = sup_x  x^order { E_Q[max_v a g(r a'/(a x))] - g(1/x) }
route C   exp((order-1) R) - 1 = min_x  max_v  E_Q[a g(r a'/(a x))] / E_Q[a (1 + order (r a'/(a x) - 1))]

and the rule for g(k r) of remainder.py makes each x cost three multiplications a node. Proofs: docs/accounting.md.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reticent.accounting.events import SelectiveAttempt
from reticent.accounting.losses.pair import total_variation
from reticent.accounting.renyi.remainder import log_remainder, power_gain
from reticent.accounting.renyi.sampled_gaussian import subsampled_gaussian
from reticent.accounting.selective.corners import Corners, corners
from reticent.accounting.selective.moments import PairMoments, moments

Array = NDArray[np.float64]

MARGIN = 1 + 1e-4
"""On every numeric optimum, for what the quadrature leaves."""


def attempt_curve(attempt: SelectiveAttempt, orders: Array) -> Array:
    """Route S: the divergence of one attempt, rejection seen, rejected candidate hidden.

    >>> fmnist = SelectiveAttempt(2048 / 60000, 2.15, 256 / 60000, 0.1056498, 0.5)
    >>> attempt_curve(fmnist, np.array([4.0])).round(6)
    array([0.000352])
    """
    ceiling = _attempt_ceiling(attempt, orders)
    if attempt.accept_high == 1 or attempt.rate == 0 or not np.isfinite(ceiling).any():
        return ceiling
    return np.minimum(_worst(attempt, orders, _attempt_excess), ceiling)


def release_curve(attempt: SelectiveAttempt, orders: Array) -> Array:
    """Route C: the divergence of one accepted update after any number of hidden attempts.

    >>> fmnist = SelectiveAttempt(2048 / 60000, 2.15, 256 / 60000, 0.1056498, 0.5)
    >>> release_curve(fmnist, np.array([4.0])).round(6)
    array([0.00154])
    """
    if attempt.accept_low == 0 or attempt.noise_multiplier == 0:
        return np.full(len(orders), np.inf)
    return np.minimum(_worst(attempt, orders, _release_excess), _release_ceiling(attempt, orders))


def _worst(attempt: SelectiveAttempt, orders: Array, log_excess: Callable[[Problem], float]) -> Array:
    """The larger divergence of both directions at each order."""
    found = [max(log_excess(Problem.of(attempt, float(order), sign)) for sign in (1, -1)) for order in orders]
    return np.asarray(MARGIN * np.logaddexp(0, np.array(found)) / (orders - 1))


@dataclass(frozen=True, eq=False)
class Problem:
    """One order and one direction of the search for the worst test."""

    attempt: SelectiveAttempt
    corner: Corners
    moments: PairMoments

    @classmethod
    def of(cls, attempt: SelectiveAttempt, order: float, sign: int) -> Problem:
        """`sign` 1: the record is removed (P is present over Q absent), -1: it is added."""
        found = moments(attempt.rate, attempt.noise_multiplier, order, sign)
        return cls(attempt, corners(attempt)[0 if sign == 1 else 1], found)

    @property
    def order(self) -> float:
        """The Renyi order."""
        return self.moments.order

    @property
    def log_swing(self) -> Array:
        """log(a' / a) at every corner."""
        return np.asarray(np.log(self.corner.after / self.corner.before))

    @property
    def log_unit(self) -> float:
        """The logarithm of the unit in which `numerators` are given, so that nothing overflows."""
        return self.moments.scale + self.order * max(0.0, float(self.log_swing.max()))

    def numerators(self, log_x: float) -> Array:
        """a g(r a' / (a x)) times the mass, for each corner and node."""
        order, log_k = self.order, self.log_swing - log_x
        power = self.corner.before * np.exp(order * log_k + self.moments.scale - self.log_unit)
        constant = self.corner.before * np.exp(log_remainder(log_k, order) - self.log_unit)
        slope = self.corner.before * order * power_gain(log_k, order, -self.log_unit)
        return self._mix(constant, slope) + power[:, None] * self.moments.remainder

    def denominators(self, log_x: float) -> Array:
        """a (1 + order (r a' / (a x) - 1)) times the mass, for each corner and node."""
        k = np.exp(self.log_swing - log_x)
        constant = self.corner.before * (1 + self.order * (k - 1))
        return self._mix(constant, self.corner.before * self.order * k)

    def _mix(self, constant: Array, slope: Array) -> Array:
        return np.asarray(constant[:, None] * self.moments.mass + slope[:, None] * self.moments.shift)


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


def _attempt_excess(problem: Problem) -> float:
    """Route S: log of the supremum over x, bounded on intervals that are split where the bound is largest."""
    low, high = _attempt_range(problem.attempt)
    if problem.order * max(-low, high) > 300:
        return math.inf
    chords = Chords(problem)
    points = [chords.point(log_x) for log_x in np.linspace(low, high, 5)]
    best = max(point.first - chords.second(point.log_x) for point in points)
    heap = [chords.bound(left, right) for left, right in itertools.pairwise(points)]
    heapq.heapify(heap)
    for _ in range(100):
        bound, place, left, right = heap[0]
        if -bound <= best * (1 + 1e-6):
            break
        middle = chords.point(place if left.log_x < place < right.log_x else (left.log_x + right.log_x) / 2)
        best = max(best, middle.first - chords.second(middle.log_x))
        heapq.heapreplace(heap, chords.bound(left, middle))
        heapq.heappush(heap, chords.bound(middle, right))
    return math.log(-heap[0][0]) + problem.log_unit


def _attempt_range(attempt: SelectiveAttempt) -> tuple[float, float]:
    """Between which log x the ratio of the chances of rejection lies."""
    low, high = attempt.accept_low, attempt.accept_high
    apart = total_variation(attempt.rate, attempt.noise_multiplier) + attempt.validation_rate
    widest = (1 - low) / (1 - high)
    reach = (high - low) * apart / (1 - high)
    floor = max(1 - reach, 1 / widest)
    return math.log(floor), math.log(min(1 + reach, widest)) + 1e-12


class Point(NamedTuple):
    """A place x and the first term there."""

    log_x: float
    first: float


@dataclass(frozen=True, eq=False)
class Chords:
    """Route S as a difference of two convex functions of y = x^(order-1).

    On an interval the first lies under its chord; the chord minus the second is concave, with its top at
    x = 1 + slope / order: a certified bound for the whole interval from its two ends.
    """

    problem: Problem

    def point(self, log_x: float) -> Point:
        """The first term at x."""
        worst = float(self.problem.numerators(log_x).max(axis=0).sum())
        return Point(log_x, math.exp(self.problem.order * log_x) * worst)

    def second(self, log_x: float) -> float:
        """x^order g(1/x)."""
        order = self.problem.order
        return math.exp(order * log_x + float(log_remainder(np.asarray(-log_x), order)) - self.problem.log_unit)

    def bound(self, left: Point, right: Point) -> tuple[float, float, Point, Point]:
        """Minus the bound on the interval and where it lies, with the ends: ready for a heap."""
        slope = (right.first - left.first) / self._growth(left.log_x, right.log_x)
        top = math.log1p(max(slope * math.exp(min(self.problem.log_unit, 300.0)) / self.problem.order, -0.999))
        place = min(max(top, left.log_x), right.log_x)
        return -(left.first + slope * self._growth(left.log_x, place) - self.second(place)), place, left, right

    def _growth(self, left: float, right: float) -> float:
        """How much y grows between two places."""
        power = self.problem.order - 1
        return math.exp(power * left) * math.expm1(power * (right - left))


def _release_excess(problem: Problem) -> float:
    """Route C: log of the least certificate over x, by golden section (the certificate is quasi-convex in x)."""
    attempt, golden = problem.attempt, (math.sqrt(5) - 1) / 2
    apart = total_variation(attempt.rate, attempt.noise_multiplier) + attempt.validation_rate
    high = min(math.log1p((attempt.accept_high / attempt.accept_low - 1) * apart), 300 / problem.order) + 1e-12
    low = -high
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left = _certificate(problem, left)
    at_right = _certificate(problem, right, at_left)
    for _ in range(12):
        if at_left <= at_right:  # also if both are infinite: the denominators fail first where x is large
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = _certificate(problem, left, at_right)
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = _certificate(problem, right, at_left)
    return math.log(min(at_left, at_right)) + problem.log_unit


def _certificate(problem: Problem, log_x: float, guess: float = 0.0) -> float:
    """The largest ratio over all tests at one x, by Dinkelbach's iteration: an upper bound whatever x is."""
    top, bottom = problem.numerators(log_x), problem.denominators(log_x)
    ratio, nodes = guess if math.isfinite(guess) else 0.0, np.arange(len(problem.moments.mass))
    for _ in range(100):
        test = np.argmax(top - ratio * bottom, axis=0)
        below = float(bottom[test, nodes].sum())
        if below <= 0:
            return math.inf
        better = float(top[test, nodes].sum()) / below
        if abs(better - ratio) <= 1e-9 * ratio:
            return max(better, ratio)
        ratio = better
    return math.inf
