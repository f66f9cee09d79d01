"""From a Renyi curve to (epsilon, delta) and back."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Conversion = Literal["new", "old"]

NOTHING = 1e-300
"""Stands for 0 under a logarithm: a delta that no double tells from it."""


def overhead(orders: Array | float, delta: float, conversion: Conversion = "new") -> Array:
    """What a conversion adds to the Renyi divergence of each order to make it an epsilon.

    "new" is Canonne, Kamath & Steinke 2020, proposition 12 (of the fourth version): the hockey-stick divergence at
    epsilon, E[(1 - exp(epsilon - L))_+], is at most (1/order) (1 - 1/order)^(order-1) E[exp((order-1) (L - epsilon))],
    point by point. "old" is Mironov 2017, proposition 3, which bounds P(L > epsilon) instead.

    >>> overhead(np.array([2.0, 18.0]), 1e-5).round(6)
    array([10.126631,  0.450051])
    """
    orders = np.asarray(orders, dtype=float)
    if conversion == "old":
        return np.asarray(-np.log(delta) / (orders - 1))
    return np.asarray(np.log1p(-1 / orders) - (np.log(delta) + np.log(orders)) / (orders - 1))


def to_epsilon(orders: Array, rdp: Array, delta: float, conversion: Conversion = "new") -> tuple[float, float | None]:
    """The smallest epsilon a Renyi curve proves at `delta`, and the order that proves it.

    >>> epsilon, order = to_epsilon(np.array([2.0, 8.0, 32.0]), np.array([0.1, 0.4, 1.6]), 1e-5)
    >>> round(epsilon, 4), order
    (1.6141, 8.0)
    """
    rdp = np.where(np.isnan(rdp), np.inf, rdp)  # what could not be computed proves nothing
    if not np.isfinite(rdp).any():
        return float("inf"), None
    if conversion == "new" and np.any(np.expm1(-rdp) + delta**2 > 0):
        # total variation <= sqrt(1 - exp(-KL)) <= delta: nothing is left for epsilon (Bretagnolle & Huber 1979)
        return 0.0, float(orders[int(np.argmin(rdp))])
    epsilons = rdp + overhead(orders, delta, conversion)
    best = int(np.argmin(epsilons))
    return max(0.0, float(epsilons[best])), float(orders[best])


def to_delta(orders: Array, rdp: Array, epsilon: float) -> float:
    """The smallest delta a Renyi curve proves at `epsilon`: the inverse of `to_epsilon`.

    >>> round(to_delta(np.array([8.0]), np.array([0.4]), 1.6141), 7)
    1e-05
    """
    finite = np.isfinite(rdp)
    orders, rdp = orders[finite], rdp[finite]
    if not len(orders):
        return 1.0
    by_order = (orders - 1) * (rdp - epsilon + np.log1p(-1 / orders)) - np.log(orders)
    by_total_variation = 0.5 * np.log(np.maximum(-np.expm1(-rdp), NOTHING))
    return float(min(1.0, np.exp(min(by_order.min(), by_total_variation.min()))))
