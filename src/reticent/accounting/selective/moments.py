"""The Gaussian pair on nodes: the three moments from which every worst case over tests is put together."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.accounting.losses.pair import log_absent, log_ratio
from reticent.accounting.renyi.remainder import log_remainder

Array = NDArray[np.float64]

NODES = 4001
"""Of the trapezoid rule, which errs exponentially little on a smooth integrand: half as many change no plain divergence
by more than 7e-9, twice as many none by 1e-12. What a test's kinks leave is in `MARGIN` of renyi.py."""

WIDEST, SCANNED = 12.0, 8001
"""Where the integrand is looked for: so many deviations beyond where the laws and their tilts are centred, at so many
places. Twice as far and eight times as many places change no divergence by more than 2e-12."""

DROPPED = 45.0
"""Nodes end where the integrand is below exp(-45) = 3e-20 of its peak. What is cut off is missing from the divergence,
on the low side; it is less than rounding, and 1e-15 of what `MARGIN` adds."""

CORE = 9.0
"""Deviations that are covered in any case, so that all but 2e-19 of either law has a node."""


@dataclass(frozen=True, eq=False)
class PairMoments:
    """Per node its mass under Q, that times (r - 1), and that times g(r) exp(-scale); r = P/Q, g as in remainder.py."""

    order: float
    scale: float
    remainder: Array
    mass: Array
    shift: Array


def moments(rate: float, noise_multiplier: float, order: float, sign: int) -> PairMoments:
    """The moments at one order; `sign` 1: the record is removed (P is present over Q absent), -1: it is added.

    >>> found = moments(0.1, 2.0, 2.0, 1)
    >>> round(float(found.mass.sum()), 9), round(abs(float(found.shift.sum())), 9)
    (1.0, 0.0)
    """

    def logs(nodes: Array) -> tuple[Array, Array]:
        ratio = log_ratio(nodes, rate, noise_multiplier)
        return sign * ratio, log_absent(nodes, noise_multiplier) + (0.0 if sign == 1 else ratio)

    scan = np.linspace(-WIDEST * noise_multiplier - order, WIDEST * noise_multiplier + order, SCANNED)
    ratio, density = logs(scan)
    weight = density + log_remainder(ratio, order)
    seen = scan[weight >= weight.max() - DROPPED]
    nodes = np.linspace(min(seen[0], -CORE * noise_multiplier), max(seen[-1], 1 + CORE * noise_multiplier), NODES)
    ratio, density = logs(nodes)
    log_mass = density + math.log(nodes[1] - nodes[0])
    weight = log_mass + log_remainder(ratio, order)
    scale = max(0.0, float(weight.max()))
    mass = np.exp(log_mass)
    shift = np.where(ratio < 1, mass * np.expm1(np.minimum(ratio, 1.0)), np.exp(log_mass + ratio) - mass)
    return PairMoments(order, scale, np.exp(weight - scale), mass, shift)
