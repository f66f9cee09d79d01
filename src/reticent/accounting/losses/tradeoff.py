"""What an adversary can do at most: the power of any membership test."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

from reticent.accounting.events import Event, Tally
from reticent.accounting.losses import pld as losses
from reticent.accounting.losses.distribution import Loss
from reticent.accounting.losses.gaussian import safe_exp
from reticent.accounting.pricing import check_delta, total_curve
from reticent.accounting.renyi.conversions import to_delta
from reticent.accounting.renyi.curves import ORDERS
from reticent.accounting.simplify import tally

Array = NDArray[np.float64]
Guess = Literal["present", "absent", "either"]

EPSILONS: Array = np.geomspace(1e-3, 100, 200)
"""Where the profile of a curve is looked at: every epsilon proves its line, so that more would only tighten."""

LEAST_MU, MOST_MU = 1e-6, 1e3
"""Between which `mu` is looked for: from no privacy loss at all to none left."""


def power(events: Tally | Iterable[Event], fpr: Array, guess: Guess = "present") -> Array:
    """The highest true positive rate any test of one record's membership can reach at each false positive rate.

    `guess` is what the test claims: that the record is "present", that it is "absent", or whichever is easier.

    >>> from reticent.accounting.events import Gaussian
    >>> power([Gaussian(1.0)], np.array([0.01, 0.1])).round(3)
    array([0.092, 0.389])
    """
    simple, fpr = tally(events), np.asarray(fpr, dtype=float)
    if not simple:
        return fpr
    if not all(losses.has_pld(event) for event in simple):
        return _power_by_curve(simple, fpr)
    removed, added = losses.distribution(simple)
    laws = {"present": [removed], "absent": [added], "either": [removed, added]}[guess]
    return np.asarray(np.max([_power(law, fpr) for law in laws], axis=0))


def _power(law: Loss, fpr: Array) -> Array:
    """min over epsilon of exp(epsilon) fpr + delta(epsilon): the profile and the trade-off curve are dual."""
    slopes = safe_exp(law.values)
    intercepts = law.deltas()
    return np.array([min(1.0, float(np.min(slopes * rate + intercepts))) if rate < 1 else 1.0 for rate in fpr])


def _power_by_curve(events: Tally, fpr: Array) -> Array:
    """The same from (epsilon, delta) pairs of the Renyi curve, in both directions."""
    total = total_curve(events)
    best = np.ones(len(fpr))
    for epsilon in EPSILONS:
        delta = to_delta(ORDERS, total, float(epsilon))
        best = np.minimum(best, math.exp(epsilon) * fpr + delta)
        best = np.minimum(best, 1 - math.exp(-epsilon) * np.maximum(1 - delta - fpr, 0.0))
    return best


def mu(epsilon: float, delta: float) -> float:
    """The mu of the Gaussian trade-off curve through (epsilon, delta): for display only, never a certificate.

    Dong, Roth & Su 2022: the profile of mu-GDP is that of one Gaussian release with noise 1 / mu.

    >>> round(mu(4.377, 1e-5), 3)
    1.0
    """
    check_delta(delta)

    def excess(log_mu: float) -> float:
        scale = math.exp(log_mu)
        other = math.exp(epsilon + float(log_ndtr(-scale / 2 - epsilon / scale)))
        return float(ndtr(scale / 2 - epsilon / scale)) - other - delta

    least, most = math.log(LEAST_MU), math.log(MOST_MU)
    if excess(most) < 0:
        return MOST_MU
    return LEAST_MU if excess(least) > 0 else math.exp(float(brentq(excess, least, most)))
