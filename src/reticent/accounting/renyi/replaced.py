"""Renyi curves for replacing one example: what an event costs when a record may be exchanged for any other.

A release of a sum on a Poisson draw has a worst pair of its own, below; everything else goes through the dataset
without the record, by the weak triangle inequality. Proofs: docs/accounting.md.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from reticent.accounting.events import (
    BestTrial,
    Composed,
    Event,
    FixedSize,
    Gaussian,
    PartInTurn,
    Repeated,
    RoundOfStream,
    Subsampled,
    Truncated,
)
from reticent.accounting.losses.pair import log_absent, log_ratio
from reticent.accounting.renyi.curves import ORDERS, capped, curve
from reticent.accounting.renyi.remainder import log_remainder
from reticent.accounting.renyi.swapped import cut_short, mixed, swapped
from reticent.accounting.selection import best_trial
from reticent.accounting.simplify import tally

Array = NDArray[np.float64]

LEAST_NOISE = 0.25
"""Below it the integral takes too many nodes, and no epsilon is worth them: the triangle does."""
MARGIN = 1 + 1e-6
"""For what the quadrature leaves."""


def replaced(event: Event, orders: Array = ORDERS) -> Array:
    """The Renyi divergence of an event at each order when one example is replaced.

    >>> replaced(Gaussian(2.0), np.array([2.0, 8.0]))
    array([1., 4.])
    """
    match event:
        case Gaussian(noise_multiplier):
            return 4 * curve(Gaussian(noise_multiplier), orders)  # the sum moves twice as far
        case Subsampled(rate, Gaussian(noise_multiplier)) if noise_multiplier >= LEAST_NOISE:
            return np.asarray(_sampled(rate, noise_multiplier, tuple(orders.tolist())))
        case Composed(parts):
            found = tally(parts).items()  # together, since some tell of one example what others do not
            return np.asarray(sum((count * replaced(part, orders) for part, count in found), np.zeros(len(orders))))
        case PartInTurn(_, _, inner) | RoundOfStream(_, _, inner):
            return replaced(inner, orders)
        case FixedSize(_, _, Gaussian()):
            return curve(event, orders)  # the same whichever way two datasets differ
        case Truncated(rate, most, size, Gaussian(noise_multiplier)):
            full, share = cut_short(rate, most, size)
            plain = replaced(Subsampled(rate, Gaussian(noise_multiplier)), orders)
            return mixed(full, plain, swapped(share, noise_multiplier, orders), orders)
        case Repeated(inner, count) if count:
            return count * replaced(inner, orders)
        case BestTrial(trial, eta, gamma) if not capped(trial):
            return best_trial(lambda asked: replaced(trial, asked), eta, gamma, orders, ORDERS)
        case _:
            return triangle(event, orders)


def triangle(event: Event, orders: Array) -> Array:
    """Remove the record, then add the other: D_a(P|Q) <= (a - 1/2) / (a - 1) D_2a(P|R) + D_(2a-1)(R|Q).

    The weak triangle inequality of Mironov 2017. It holds for every event: a curve is the larger of both directions.

    >>> triangle(Gaussian(2.0), np.array([8.0])).round(4)
    array([4.0179])
    """
    return (orders - 0.5) / (orders - 1) * curve(event, 2 * orders) + curve(event, 2 * orders - 1)


@lru_cache(maxsize=20_000)
def _sampled(rate: float, noise_multiplier: float, orders: tuple[float, ...]) -> tuple[float, ...]:
    """The worst pair of a sampled Gaussian: (1-q) N(0) + q N(1) over (1-q) N(0) + q N(-1), its own mirror image.

    By the trapezoid rule, which converges exponentially: the step resolves the Gaussian and the branch points at height
    pi s^2. As a remainder, so that nothing cancels where the divergence is tiny.
    """
    if rate == 0 or math.isinf(noise_multiplier):
        return (0.0,) * len(orders)
    if rate == 1:
        return tuple(2 * order / noise_multiplier**2 for order in orders)
    s = noise_multiplier
    found = []
    for order in orders:
        nodes = np.arange(-1 - 12 * s, 2 * order + 12 * s, min(s, s * s) / 4)
        other = log_ratio(-nodes, rate, s)
        log_mass = log_absent(nodes, s) + other + math.log(nodes[1] - nodes[0])
        log_excess = logsumexp(log_mass + log_remainder(log_ratio(nodes, rate, s) - other, order))
        found.append(MARGIN * float(np.logaddexp(0, log_excess)) / (order - 1))
    return tuple(found)
