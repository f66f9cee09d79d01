"""The privacy loss distribution of one selective attempt (route S), dominating every test.

From theorem P of docs/accounting.md to what is computed. For an outcome of likelihood ratio r its two integrands are

[r a' - exp(epsilon) a]_+   the accepted update counts, and        [exp(epsilon) a - r a']_+   the rejection counts too,

each at its largest over the corners (a, a'), times Q. A line r a' - exp(epsilon) a = constant turns steadily as r
grows, so its best corner walks along the hull of the polygon, once, and goes on to the next where r / exp(epsilon)
passes (a step in a) / (a step in a'): a `Chain`. Summed by parts, each integral is a sum over the steps of
P(log r above epsilon + threshold) and Q(the same): normal probabilities, as log r grows with the outcome. Its
derivative in exp(epsilon) is minus the Q part (the corners are best, so that their moving adds nothing), which makes
the two parts the masses under P and Q of all losses above epsilon.

The larger of both is convex in exp(epsilon), as they are: the profile of a pair that dominates the attempt. Dominating
pairs compose, adaptively too (Zhu, Dong & Wang 2022, theorem 10).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from reticent.accounting.events import SelectiveAttempt
from reticent.accounting.losses.distribution import Loss
from reticent.accounting.losses.gaussian import loss_range, safe_exp, split
from reticent.accounting.losses.pair import where_log_ratio_is
from reticent.accounting.selective.chords import rejection_range
from reticent.accounting.selective.corners import Corners, corners

Array = NDArray[np.float64]

FLAT = 1e-15
"""Corners whose chances differ by less than this share are one corner that rounding has split; the walk stays. Were
they two, the loss would change by as little."""

SPARE = 1e-20
"""A mass that may be counted as infinite loss rather than lengthen the grid for it: 1e-14 after a million attempts."""

NEVER = 1e-300
"""Stands for a chance of 0 under a fraction: the log ratio it makes, some 690, lies above all losses that matter."""


def attempt_loss(attempt: SelectiveAttempt, step: float) -> tuple[Loss, Loss]:
    """The loss distributions of one attempt when a record is removed and when one is added.

    >>> removed, added = attempt_loss(SelectiveAttempt(0.1, 2.0, 0.01, 0.2, 0.5), 1e-3)
    >>> 0 < removed.delta(0.1) < 0.01
    True
    """
    removed, added = corners(attempt)
    return _loss(attempt, removed, 1, step), _loss(attempt, added, -1, step)


@dataclass(frozen=True, eq=False)
class Chain:
    """The corners a worst test runs through as the likelihood ratio grows, written as steps.

    Where the log ratio passes epsilon + `thresholds[j]`, the chance changes by `before[j]` under Q, `after[j]` under P.
    """

    thresholds: Array
    before: Array
    after: Array


def kept_chain(corner: Corners) -> Chain:
    """The corners that maximise [r a' - exp(epsilon) a]_+, from the first that is above 0 on.

    >>> kept_chain(Corners(np.array([0.2, 0.4]), np.array([0.2, 0.4]))).after
    array([0.2, 0.2])
    """
    path = _walk(corner.before, corner.after)
    start = int(np.argmin(_ratio(corner.before[path], corner.after[path])))
    before, after = corner.before[path[start:]], corner.after[path[start:]]
    steps_before, steps_after = np.diff(before, prepend=0.0), np.diff(after, prepend=0.0)
    return Chain(np.log(_ratio(steps_before, steps_after)), steps_before, steps_after)


def dropped_chain(corner: Corners) -> Chain:
    """The corners that maximise [exp(epsilon) a - r a']_+, up to the last that is above 0."""
    path = _walk(-corner.before, -corner.after)
    stop = int(np.argmax(_ratio(corner.before[path], corner.after[path])))
    before, after = corner.before[path[: stop + 1]], corner.after[path[: stop + 1]]
    steps_before, steps_after = -np.diff(before, append=0.0), -np.diff(after, append=0.0)
    return Chain(np.log(_ratio(steps_before, steps_after)), steps_before, steps_after)


def _walk(before: Array, after: Array) -> list[int]:
    """Along the hull from the least `before` to the greatest `after`: the maximisers of r after - before as r grows."""
    path = [int(np.lexsort((-after, before))[0])]
    while True:
        rise, run = after - after[path[-1]], before - before[path[-1]]
        ahead = np.flatnonzero(rise > FLAT * np.abs(after).max())
        if not len(ahead):
            return path
        path.append(int(ahead[np.argmin(run[ahead] / rise[ahead])]))


def _ratio(above: Array, below: Array) -> Array:
    """above / below; a chance of 0 under both counts as 1, under P alone as infinite."""
    return np.asarray(np.where((above == 0) & (below == 0), 1.0, above / np.where(below == 0, NEVER, below)))


def _loss(attempt: SelectiveAttempt, corner: Corners, sign: int, step: float) -> Loss:
    """The pessimistic distribution on a grid; `sign` 1: P is present over Q absent, -1: the other way round."""
    kept, dropped = kept_chain(corner), dropped_chain(corner)
    ends = sorted(sign * end for end in loss_range(attempt.rate, attempt.noise_multiplier))
    lowest = math.floor((ends[0] - max(dropped.thresholds)) / step)
    highest = math.ceil((ends[1] - min(kept.thresholds)) / step)
    if attempt.accept_high < 1 and _left_above(attempt, kept, dropped, sign, step * highest) > SPARE:
        highest = max(highest, math.ceil(rejection_range(attempt)[1] / step))
    grid = step * np.arange(lowest, highest + 1, dtype=np.float64)
    above_p, above_q = _survival(attempt, kept, dropped, sign, grid)
    mass = split(np.maximum(-np.diff(above_p), 0.0), -np.diff(above_q) * safe_exp(grid[:-1]), step)
    mass[0] += 1 - above_p[0]  # less loss than the grid has: rounded up onto it
    return Loss(step, lowest, mass, max(0.0, float(above_p[-1])))  # rounding may leave less than nothing


def _left_above(attempt: SelectiveAttempt, kept: Chain, dropped: Chain, sign: int, place: float) -> float:
    """The mass of losses above what an accepted update can have: rejections, where one record moves the test a lot."""
    return float(_survival(attempt, kept, dropped, sign, np.array([place]))[0][0])


def _survival(attempt: SelectiveAttempt, kept: Chain, dropped: Chain, sign: int, grid: Array) -> tuple[Array, Array]:
    """The masses under P and Q of the losses above each epsilon, by whichever of the two integrals is larger."""

    def total(chain: Chain, weights: Array, present: bool, above: bool) -> Array:
        parts = zip(weights, chain.thresholds, strict=True)
        return np.asarray(
            sum(weight * _mass(attempt, grid + place, present, above == (sign == 1), sign) for weight, place in parts)
        )

    p_present = sign == 1
    update_p, update_q = total(kept, kept.after, p_present, True), total(kept, kept.before, not p_present, True)
    both_p = 1 - total(dropped, dropped.after, p_present, False)
    both_q = 1 - total(dropped, dropped.before, not p_present, False)
    ratio = safe_exp(grid)
    larger = both_p - ratio * both_q > update_p - ratio * update_q
    return np.where(larger, both_p, update_p), np.where(larger, both_q, update_q)


def _mass(attempt: SelectiveAttempt, log_ratios: Array, present: bool, right: bool, sign: int) -> Array:
    """The chance, with the record present or absent, of outcomes to the right (or left) of where the log ratio is."""
    place = where_log_ratio_is(sign * log_ratios, attempt.rate, attempt.noise_multiplier)
    side = -1.0 if right else 1.0
    absent = ndtr(side * place / attempt.noise_multiplier)
    if not present:
        return np.asarray(absent)
    moved = ndtr(side * (place - 1) / attempt.noise_multiplier)
    return np.asarray((1 - attempt.rate) * absent + attempt.rate * moved)
