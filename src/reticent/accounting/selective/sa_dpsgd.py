"""Renyi curve of the first accepted of at most m candidates, judged on public data (SA-DPSGD, one released update).

With Z the chance that a candidate is accepted, the released law is Q h, where h = h1 on accepted outcomes and h0 on the
others. The worst rule accepts an interval of outcomes or its complement (docs/accounting.md, theorem SA), so the
supremum runs over two thresholds. As in renyi.py everything is an integral of remainders, and cumulative sums
of three moments, taken from both ends so that small chances stay accurate, give every pair of thresholds at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.accounting.events import AnnealedRelease
from reticent.accounting.renyi.remainder import log_remainder, power_gain
from reticent.accounting.renyi.sampled_gaussian import subsampled_gaussian
from reticent.accounting.selective.moments import PairMoments, moments

Array = NDArray[np.float64]
Index = NDArray[np.intp]

MARGIN = 1 + 1e-3
"""On the optimum found: it is a search, not a certificate, and a threshold between two nodes is moved to one of them.
Four times the nodes change the divergence by -1.8e-5 to 4e-6 of itself."""

COARSE = 160
"""Thresholds tried at first, each with each. A bump between them would be missed; trying every pair of 801 nodes found
4e-11 more at most (noise 0.2 to 10, rates 1e-6 to 0.9, orders 1.2 to 512)."""

ZOOM = 5
"""Each finer grid has a stride so many times smaller, and reaches as many strides to both sides of the best so far:
one stride of the grid before."""


def annealed_curve(event: AnnealedRelease, orders: Array) -> Array:
    """The divergence of one released update; at most that of all its candidates together.

    >>> event = AnnealedRelease(2048 / 60000, 2.15, 10)
    >>> annealed_curve(event, np.array([4.0])).round(5)
    array([0.00234])
    """
    plain = subsampled_gaussian(event.rate, event.noise_multiplier, orders)
    if event.max_rejections == 0 or event.rate == 0 or event.noise_multiplier == 0:
        return plain
    found = [
        max(_log_excess(moments(event.rate, event.noise_multiplier, float(order), sign), event) for sign in (1, -1))
        for order in orders
    ]
    ceiling = (event.max_rejections + 1) * plain
    return np.asarray(np.minimum(MARGIN * np.logaddexp(0, np.array(found)) / (orders - 1), ceiling))


def _log_excess(found: PairMoments, event: AnnealedRelease) -> float:
    """log of the supremum over both thresholds and both modes: a coarse grid, then ever finer ones round the best."""
    sums = CandidateSums(found, event.max_rejections)
    stride = len(found.mass) // COARSE
    places = np.unique(np.append(np.arange(0, len(found.mass) + 1, stride), len(found.mass)))
    start, stop = (grid[np.triu_indices(len(places))] for grid in np.meshgrid(places, places, indexing="ij"))
    best, left, right = sums.best(start, stop)
    while stride > 1:
        stride = max(1, stride // ZOOM)
        near = np.arange(-ZOOM, ZOOM + 1) * stride
        start, stop = (grid.ravel() for grid in np.meshgrid(left + near, right + near, indexing="ij"))
        fits = (start >= 0) & (stop <= len(found.mass)) & (start <= stop)
        best, left, right = max((best, left, right), sums.best(start[fits], stop[fits]))
    return float(np.log(best)) + found.scale


@dataclass(frozen=True, eq=False)
class Part:
    """Mass, shift and remainder of the outcomes in some set."""

    mass: Array
    shift: Array
    remainder: Array


class CandidateSums:
    """PairMoments of any interval of nodes and of its complement, and what a rule that accepts one of them costs."""

    def __init__(self, found: PairMoments, rejections: int):
        self.order, self.scale, self.rejections = found.order, found.scale, rejections
        columns = np.stack([found.mass, found.shift, found.remainder])
        edge = np.zeros((3, 1))
        self._from_left = np.concatenate([edge, np.cumsum(columns, axis=1)], axis=1)
        self._from_right = np.concatenate([np.cumsum(columns[:, ::-1], axis=1)[:, ::-1], edge], axis=1)

    def best(self, start: Index, stop: Index) -> tuple[float, int, int]:
        """The largest excess of all rules that accept, or reject, nodes `start` to `stop`, and where it is."""
        outside = self._from_left[:, start] + self._from_right[:, stop]
        by_left = self._from_left[:, stop] - self._from_left[:, start]
        by_right = self._from_right[:, start] - self._from_right[:, stop]
        inside = np.where(self._from_left[0, stop] < self._from_right[0, start], by_left, by_right)
        first, second = Part(*inside), Part(*outside)
        excess = np.maximum(self._excess(first, second), self._excess(second, first))
        place = int(np.argmax(excess))
        return float(excess[place]), int(start[place]), int(stop[place])

    def _excess(self, accepted: Part, rejected: Part) -> Array:
        """exp((order-1) D) - 1, times exp(-scale), of the rule that accepts the first part."""
        with np.errstate(all="ignore"):  # what overflows is infinite, and then the ceiling is the answer
            absent = _log_weights(accepted.mass, rejected.mass, self.rejections)
            present = _log_weights(accepted.mass + accepted.shift, rejected.mass + rejected.shift, self.rejections)
            costs = [
                self._cost(part, log_q, log_p - log_q)
                for part, log_q, log_p in zip((accepted, rejected), absent, present, strict=True)
            ]
        total = costs[0] + costs[1]
        return np.where(np.isnan(total), np.inf, total)

    def _cost(self, part: Part, log_h: Array, log_k: Array) -> Array:
        """The integral of h g(k r) over a part, by the rule for g(k r) of remainder.py."""
        order, log_down = self.order, log_h - self.scale
        power = np.exp(log_h + order * log_k) * part.remainder
        constant = np.exp(log_down + log_remainder(log_k, order)) * part.mass
        slope = order * power_gain(log_k, order, log_down)
        return np.where(part.mass > 0, power + constant + slope * part.shift, 0.0)


def _log_weights(accepted: Array, rejected: Array, rejections: int) -> tuple[Array, Array]:
    """log h1 and log h0 (theorem SA) from the chances that a candidate is accepted and rejected."""
    log_rejected = np.where(accepted < 0.5, np.log1p(-np.minimum(accepted, 0.5)), np.log(np.maximum(rejected, 0.0)))
    log_h0 = rejections * log_rejected
    tries = np.where(accepted > 0, -np.expm1(log_h0) / accepted, float(rejections))
    return np.log(tries + np.exp(log_h0)), log_h0
