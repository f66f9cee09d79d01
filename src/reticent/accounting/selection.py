"""The best of a random number of trials: what it costs, and how the number is drawn (Papernot & Steinke 2022).

A trial is a private run that ends in a model and a score. Run it K times, each time anew, and release the best with its
settings: nothing else, not even K. If K has a truncated negative binomial law that was fixed beforehand, theorem 2
bounds the divergence of what is released by that of one trial:

    D'(a) = D(a) + (1 + eta) ((1 - 1/b) D(b) + log(1 / gamma) / b) + log(E[K]) / (a - 1),  for every b >= 1,

at every order a > 1, eta > -1 and gamma between 0 and 1. For a fixed number of trials there is no such bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from reticent.errors import SettingError

Array = NDArray[np.float64]

LOGARITHMIC = 0.0
"""The eta of the logarithmic law: the cheapest of those whose mean is what most draws are about."""
LEAST_GAMMA = 1e-9


def best_trial(trial: Callable[[Array], Array], eta: float, gamma: float, orders: Array, others: Array) -> Array:
    """The Renyi curve of the best of K trials, from that of one; `others` are the orders b to choose from.

    >>> best_trial(lambda orders: 0.1 * orders, 0.0, 0.1, np.array([10.0]), np.array([1.0, 4.0])).round(3)
    array([2.027])
    """
    divergences = trial(others)
    seen = np.isfinite(divergences)
    among = (1 - 1 / others[seen]) * divergences[seen] - math.log(gamma) / others[seen]
    extra = float(among.min(initial=-math.log(gamma)))  # which it is at b = 1, for anything
    return np.asarray(trial(orders) + (1 + eta) * extra + math.log(expected_trials(eta, gamma)) / (orders - 1))


def expected_trials(eta: float, gamma: float) -> float:
    """The mean of K (Papernot & Steinke 2022, definition 1).

    >>> round(expected_trials(1.0, 0.1), 3), round(expected_trials(0.0, 0.1), 3)
    (10.0, 3.909)
    """
    if eta == 0:
        return (1 / gamma - 1) / math.log(1 / gamma)
    return float(eta * (1 - gamma) / (gamma * (1 - gamma**eta)))


def gamma_for(expected: float, eta: float = LOGARITHMIC) -> float:
    """The gamma whose law has this mean.

    >>> round(expected_trials(0.0, gamma_for(8.0)), 6)
    8.0
    """
    if not -1 < eta < math.inf:
        raise SettingError(f"eta is {eta:g}: it must be above -1 and finite")
    most = expected_trials(eta, LEAST_GAMMA)
    if not 1 < expected < most:
        raise SettingError(f"{expected:g} trials cannot be expected: take more than 1, and fewer than {most:.3g}")
    low, high = math.log(LEAST_GAMMA), math.log1p(-1e-12)
    return math.exp(float(brentq(lambda log: expected_trials(eta, math.exp(log)) - expected, low, high)))


def draw_trials(coin: float, eta: float, gamma: float) -> int:
    """K for a coin between 0 and 1: the first number at which the law's distribution passes it.

    P(K = k) falls by (1 - gamma) (k + eta) / (k + 1) from k to k + 1.

    >>> [draw_trials(coin, 1.0, 0.5) for coin in (0.1, 0.6, 0.9)]
    [1, 2, 4]
    """
    number = 1
    chance = eta * (1 - gamma) / (gamma**-eta - 1) if eta else (1 - gamma) / math.log(1 / gamma)
    total = chance
    while coin >= total and chance > 0:
        chance *= (1 - gamma) * (number + eta) / (number + 1)
        number += 1
        total += chance
    return number
