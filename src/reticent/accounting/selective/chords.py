"""Route S: the supremum over x, bounded from above on intervals that are split where the bound is largest.

In y = x^(order-1) the quantity of renyi.py is a difference of two convex functions,

first(y)  = x^order E_Q[max over corners a g(r a'/(a x))],
second(y) = x^order g(1/x) = 1 - order y + (order-1) y^(order/(order-1)), whose slope is order (x - 1):

for a corner and an outcome the first is a constant, minus a multiple of y, plus a multiple of y^(order/(order-1)), and
maxima and means of convex functions are convex. Between two points the first lies under its chord, so first - second
lies under chord - second, which is concave: its top is where the slopes agree, at x = 1 + (slope of the chord) / order,
or at the nearer end. That bounds the interval.
"""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from reticent.accounting.events import SelectiveAttempt
from reticent.accounting.losses.pair import total_variation
from reticent.accounting.renyi.remainder import log_remainder
from reticent.accounting.selective.problem import STEEPEST, Problem

FIRST_POINTS = 5
"""Where the splitting begins; more would only be work, fewer would be more splits."""

MOST_SPLITS = 100
"""In practice it takes 7 (the median of 436 random settings and orders; the most were 57). If it ends here, the bound
still holds; it is only less tight."""

CLOSE = 1e-6
"""It ends when the bound is at most this share above a value that was met: so much is given away at most."""

A_LITTLE = 1e-12
"""Added to the range of log x, so that it is an interval even where all tests reject equally often."""

LEAST_TOP = -1 + 2**-53
"""The least x - 1 that has a logarithm. The first term's slope is order (x B - C) for the best test at x, so that tops
lie at x >= 1 - accept_high: rounding alone can ask for less. Anything nearer to 0 would cut off real tops."""


def attempt_excess(problem: Problem) -> float:
    """log(exp((order-1) R) - 1) for one order and direction; infinite where x ranges too far to be computed."""
    low, high = rejection_range(problem.attempt)
    if problem.order * max(-low, high) > STEEPEST:
        return math.inf
    chords = Chords(problem)
    points = [chords.point(log_x) for log_x in np.linspace(low, high, FIRST_POINTS)]
    best = max(point.first - chords.second(point.log_x) for point in points)
    heap = [chords.bound(left, right) for left, right in itertools.pairwise(points)]
    heapq.heapify(heap)
    for _ in range(MOST_SPLITS):
        bound, place, left, right = heap[0]
        if -bound <= best * (1 + CLOSE):
            break
        middle = chords.point(place if left.log_x < place < right.log_x else (left.log_x + right.log_x) / 2)
        best = max(best, middle.first - chords.second(middle.log_x))
        heapq.heapreplace(heap, chords.bound(left, middle))
        heapq.heappush(heap, chords.bound(middle, right))
    return math.log(-heap[0][0]) + problem.log_unit


def rejection_range(attempt: SelectiveAttempt) -> tuple[float, float]:
    """Between which log x = log((1-C)/(1-B)), the ratio of the chances of rejection, lies for every test.

    C - B is at most (high - low) (total variation + validation rate) either way: the candidate's law changes, and the
    test's answer where the record is in its draw. And both chances of rejection lie between 1 - high and 1 - low.
    """
    low, high = attempt.accept_low, attempt.accept_high
    apart = total_variation(attempt.rate, attempt.noise_multiplier) + attempt.validation_rate
    widest = (1 - low) / (1 - high)
    reach = (high - low) * apart / (1 - high)
    floor = max(1 - reach, 1 / widest)
    return math.log(floor), math.log(min(1 + reach, widest)) + A_LITTLE


class Point(NamedTuple):
    """A place x and the first term there."""

    log_x: float
    first: float


@dataclass(frozen=True, eq=False)
class Chords:
    """The two convex functions, in the problem's unit, and the bound on an interval from its two ends."""

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
        # x^order is at most exp(STEEPEST): where the unit is cut, the second term is 0 to rounding
        unit = math.exp(min(self.problem.log_unit, 2 * STEEPEST))
        top = math.log1p(max(slope * unit / self.problem.order, LEAST_TOP))
        place = min(max(top, left.log_x), right.log_x)
        return -(left.first + slope * self._growth(left.log_x, place) - self.second(place)), place, left, right

    def _growth(self, left: float, right: float) -> float:
        """How much y grows between two places."""
        power = self.problem.order - 1
        return math.exp(power * left) * math.expm1(power * (right - left))
