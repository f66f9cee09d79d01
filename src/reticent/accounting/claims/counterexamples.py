"""Instances of the published algorithms whose true epsilon exceeds the published one: certain lower bounds.

One dimension, clip norm 1. The target's clipped gradient is +1, everybody else's is 0, and the loss is such that a
candidate is accepted with a chance that depends on the interval its outcome z falls into. docs/accounting.md says how a
real training run realises it, step after step. The law of a released step is then known in closed form, and the
epsilon of many of them is a convolution, rounded so that it comes out too small.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import simpson
from scipy.optimize import brentq
from scipy.special import ndtr

from reticent.accounting.events import SelectiveAttempt
from reticent.accounting.losses.distribution import Loss, compose
from reticent.accounting.losses.pair import log_absent, log_ratio, where_log_ratio_is

Array = NDArray[np.float64]

RESOLUTION = 64
"""Grid steps in one standard deviation of the loss of a step; a coarser grid merges more, and lowers the bound."""

SEEN, PLACES = 9.0, 4001
"""Deviations of the noise, and places in them, at which losses are looked at to fit the grid. Losses outside of it, a
chance of 1e-18, are left out: on the low side, as a lower bound may."""

REACH, NODES = 12.0, 20_001
"""Deviations and nodes of the quadrature of one step's divergence, piece by piece: Simpson's rule on smooth pieces."""


@dataclass(frozen=True)
class Instance:
    """One released step: outcomes between `edges` are weighed by `absent` or `present`, then normalised.

    The weights are chances of acceptance; where they are constant, this is a plain sub-sampled Gaussian.
    """

    rate: float
    noise_multiplier: float
    edges: tuple[float, ...]
    absent: tuple[float, ...]
    present: tuple[float, ...]

    def accepted(self, record_present: bool) -> float:
        """The chance that a candidate is accepted."""
        ends = np.array([-math.inf, *self.edges, math.inf])
        chances = np.diff(ndtr(ends / self.noise_multiplier))
        if not record_present:
            return float(chances @ np.array(self.absent))
        moved = np.diff(ndtr((ends - 1) / self.noise_multiplier))
        return float(((1 - self.rate) * chances + self.rate * moved) @ np.array(self.present))

    def shifts(self) -> Array:
        """What every piece adds to the log ratio of its outcomes."""
        present = np.log(np.array(self.present) / self.accepted(True))
        return np.asarray(present - np.log(np.array(self.absent) / self.accepted(False)))


def simple_instance(attempt: SelectiveAttempt, edges: tuple[float, float]) -> Instance:
    """DPSUR where only the outcome decides: candidates beyond the edges look good to everybody, those between look bad.

    >>> simple_instance(SelectiveAttempt(0.1, 2.0, 0.01, 0.2, 0.5), (-3.0, 3.0)).absent
    (0.5, 0.2, 0.5)
    """
    low, high = attempt.accept_low, attempt.accept_high
    return Instance(attempt.rate, attempt.noise_multiplier, edges, (high, low, high), (high, low, high))


def sharp_instance(attempt: SelectiveAttempt, edges: tuple[float, float, float]) -> Instance:
    """DPSUR where the target, when drawn for the test, also turns the decision: the worst case has this shape.

    >>> sharp_instance(SelectiveAttempt(0.1, 2.0, 0.01, 0.2, 0.5), (-3.0, 0.0, 3.0)).absent
    (0.5, 0.2, 0.2, 0.5)
    """
    low, high, share = attempt.accept_low, attempt.accept_high, attempt.validation_rate
    spoiled, helped = (1 - share) * high + share * low, (1 - share) * low + share * high
    absent, present = (high, low, low, high), (spoiled, low, helped, high)
    return Instance(attempt.rate, attempt.noise_multiplier, edges, absent, present)


def annealed_instance(
    rate: float, noise_multiplier: float, rejections: int, edges: tuple[float, ...], accept: tuple[float, ...]
) -> Instance:
    """The first accepted of at most `rejections` + 1 candidates; `accept` is 1 on accepted pieces, 0 on others.

    >>> annealed_instance(0.1, 2.0, 0, (1.0,), (0, 1)).absent
    (1.0, 1.0)
    """
    plain = Instance(rate, noise_multiplier, edges, accept, accept)
    weights = []
    for record_present in (False, True):
        chance = plain.accepted(record_present)
        forced = (1 - chance) ** rejections
        weights.append(tuple(kept * (1 - forced) / chance + forced for kept in accept))
    return Instance(rate, noise_multiplier, edges, *weights)


def divergence(instance: Instance, order: float) -> float:
    """The Renyi divergence of present from absent, by quadrature piece by piece.

    >>> round(divergence(Instance(1.0, 2.0, (), (1.0,), (1.0,)), 4.0), 6)
    0.5
    """
    noise, reach = instance.noise_multiplier, REACH * instance.noise_multiplier + order
    ends = [-reach, *instance.edges, reach]
    total = 0.0
    for start, stop, shift, weight in zip(ends[:-1], ends[1:], instance.shifts(), instance.absent, strict=True):
        z = np.linspace(start, stop, NODES)
        terms = log_absent(z, noise) + order * (log_ratio(z, instance.rate, noise) + shift)
        total += weight / instance.accepted(False) * float(simpson(np.exp(terms), x=z))
    return math.log(total) / (order - 1)


def lower_epsilon(instance: Instance, steps: int, delta: float) -> float:
    """An epsilon that `steps` releases of an instance certainly have at `delta`: the larger of both directions.

    >>> round(lower_epsilon(Instance(0.1, 2.0, (), (1.0,), (1.0,)), 100, 1e-5), 3)
    2.337
    """
    found = []
    for present_over_absent in (True, False):
        composed = compose([optimistic_loss(instance, present_over_absent)], [steps])
        # what `compose` counts as infinite loss is its own rounding: leave it out, twice
        found.append(composed.epsilon(delta + 2 * composed.infinite))
    return max(found)


def optimistic_loss(instance: Instance, present_over_absent: bool) -> Loss:
    """A loss distribution that the instance has at least: outcomes are merged until their ratio lies on the grid.

    Merging outcomes is post-processing, so no loss is invented; what cannot be merged is rounded down.
    """
    present, absent, grid = _cells(instance)
    if present_over_absent:
        return _merge(present, absent, grid)
    return _merge(absent[::-1], present[::-1], -grid[::-1])


def _cells(instance: Instance) -> tuple[Array, Array, Array]:
    """The chances, present and absent, of the losses between neighbouring points of a grid."""
    shifts, noise, rate = instance.shifts(), instance.noise_multiplier, instance.rate
    grid = _grid(instance, shifts)
    ends = np.array([-math.inf, *instance.edges, math.inf])
    below = np.zeros((2, len(grid)))
    for piece, shift in enumerate(shifts):
        start, stop = ends[piece : piece + 2]
        places = np.clip(where_log_ratio_is(grid - shift, rate, noise), start, stop)
        plain = ndtr(places / noise) - ndtr(start / noise)
        moved = ndtr((places - 1) / noise) - ndtr((start - 1) / noise)
        below[0] += instance.present[piece] * ((1 - rate) * plain + rate * moved)
        below[1] += instance.absent[piece] * plain
    return np.diff(below[0]) / instance.accepted(True), np.diff(below[1]) / instance.accepted(False), grid


def _grid(instance: Instance, shifts: Array) -> Array:
    noise = instance.noise_multiplier
    outcomes = np.linspace(-SEEN * noise, SEEN * noise + 1, PLACES)
    losses = log_ratio(outcomes, instance.rate, noise) + shifts[np.searchsorted(np.array(instance.edges), outcomes)]
    step = math.sqrt(float(np.average(losses**2, weights=np.exp(log_absent(outcomes, noise))))) / RESOLUTION
    return step * np.arange(math.floor(losses.min() / step), math.ceil(losses.max() / step) + 1, dtype=float)


def _merge(p: Array, q: Array, grid: Array) -> Loss:
    """Sweep from the largest loss down; what is left over takes just enough of the next cells to reach a grid point."""
    step = float(grid[1] - grid[0])
    mass = np.zeros(len(grid))
    left_p, left_q, target = 0.0, 0.0, len(grid) - 1
    for cell in range(len(p) - 1, -1, -1):
        if left_p < math.exp(grid[target]) * left_q:  # rounding in the tails: aim lower
            target = cell + 1
        ratio = math.exp(grid[target])
        spare, need = max(left_p - ratio * left_q, 0.0), ratio * q[cell] - p[cell]
        if spare <= need and need > 0:
            share = spare / need
            mass[target] += left_p + share * p[cell]
            left_p, left_q, target = (1 - share) * p[cell], (1 - share) * q[cell], cell
        else:
            left_p, left_q = left_p + p[cell], left_q + q[cell]
    mass[0] += left_p
    return Loss(step, round(float(grid[0]) / step), np.maximum(mass, 0.0), 0.0)


def closed_form(weight: float, threshold: float, noise_multiplier: float, delta: float) -> float:
    """One full-batch step whose outcomes above `threshold` weigh `weight`, the others 1: epsilon in closed form.

    >>> round(closed_form(24.0389, 1.75, 1.0, 1e-5), 4), round(closed_form(1.0, 1.75, 1.0, 1e-5), 4)
    (5.3961, 4.3772)
    """

    def chance(start: float, stop: float, mean: int) -> float:
        """The weighed chance between two outcomes; tails are taken from the side where they are small."""
        ends = (np.array([start, stop]) - mean) / noise_multiplier
        return float(ndtr(ends[1]) - ndtr(ends[0]) if ends[0] < 0 else ndtr(-ends[0]) - ndtr(-ends[1]))

    def weighed(start: float, stop: float, mean: int) -> float:
        low, high = min(max(threshold, start), stop), max(min(threshold, stop), start)
        return chance(start, high, mean) + weight * chance(low, stop, mean)

    totals = [weighed(-math.inf, math.inf, mean) for mean in (0, 1)]
    shift = math.log(totals[1] / totals[0])

    def absent_over_present(epsilon: float) -> float:
        place = 0.5 - (epsilon - shift) * noise_multiplier**2
        parts = [weighed(-math.inf, place, mean) / totals[mean] for mean in (0, 1)]
        return parts[0] - math.exp(epsilon) * parts[1]

    def present_over_absent(epsilon: float) -> float:
        place = 0.5 + (epsilon + shift) * noise_multiplier**2
        parts = [weighed(place, math.inf, mean) / totals[mean] for mean in (0, 1)]
        return parts[1] - math.exp(epsilon) * parts[0]

    return max(_root(absent_over_present, delta), _root(present_over_absent, delta))


def _root(profile: Callable[[float], float], delta: float) -> float:
    """The epsilon at which a profile falls to delta."""
    return float(brentq(lambda epsilon: profile(epsilon) - delta, 0.0, 100.0)) if profile(0.0) > delta else 0.0
