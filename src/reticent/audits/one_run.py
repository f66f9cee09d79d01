"""One-run audits: many canaries in one training, each in by a coin flip, and an auditor who guesses some of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, ndtr, ndtri
from scipy.stats import binom

from reticent.attacks.intervals import Floats
from reticent.attacks.signals import Bools
from reticent.audits.gaussian import gdp_epsilon
from reticent.errors import SettingError

MOST = 50.0
"""No audit of a realistic size proves more."""


@dataclass(frozen=True)
class Guesses:
    """Of `canaries` canaries the auditor guessed `made` and was right on `right`; she abstained on the rest."""

    canaries: int
    made: int
    right: int

    def __post_init__(self) -> None:
        if not 0 <= self.right <= self.made <= self.canaries or self.made == 0:
            raise SettingError(f"0 <= right <= made <= canaries and one guess or more, not {self}")


def guess(scores: Floats, included: Bools, tops: int, bottoms: int) -> Guesses:
    """Call the `tops` largest scores "in", the `bottoms` smallest "out"; both numbers are fixed in advance.

    >>> guess(np.array([3.0, 2.0, 1.0, 0.0]), np.array([True, True, False, False]), 1, 1)
    Guesses(canaries=4, made=2, right=2)
    """
    order = np.argsort(scores, kind="stable")
    right = included[order[len(order) - tops :]].sum() + (~included[order[:bottoms]]).sum()
    return Guesses(len(scores), tops + bottoms, int(right))


def p_value(guesses: Guesses, epsilon: float, delta: float) -> float:
    """The chance of so many right guesses under (epsilon, delta)-DP, at most (Steinke et al. 2023).

    >>> round(p_value(Guesses(100, 100, 100), epsilon=3.4930, delta=0.0), 3)
    0.05
    """
    made, right = guesses.made, guesses.right
    rate = float(expit(epsilon))
    beta = float(binom.sf(right - 1, made, rate))
    if delta == 0 or right == 0:
        return min(1.0, beta)
    slips = np.arange(1, right + 1)
    alpha = float(((binom.sf(right - slips - 1, made, rate) - beta) / slips).max())
    return min(1.0, beta + 2 * guesses.canaries * delta * max(alpha, 0.0))


def epsilon_one_run(guesses: Guesses, delta: float, alpha: float = 0.05) -> float:
    """The largest epsilon that one run contradicts at level `alpha` (Steinke et al. 2023).

    >>> round(epsilon_one_run(Guesses(1000, 200, 180), delta=1e-5), 4)
    1.7963
    """
    return _largest_rejected(lambda epsilon: p_value(guesses, epsilon, delta) < alpha)


def contradicts(guesses: Guesses, least_fpr: Callable[[float], float], alpha: float = 0.05) -> bool:
    """Whether one run contradicts a whole trade-off curve (Mahloujifar et al. 2024, two-valued secrets).

    `least_fpr` is the curve read as "a test with this true positive rate has at least that false positive rate".
    """
    right_mass = alpha * guesses.right / guesses.canaries
    wrong_mass = alpha * (guesses.made - guesses.right) / guesses.canaries
    for count in range(guesses.right - 1, -1, -1):
        grown = max(wrong_mass, least_fpr(right_mass))
        if grown == wrong_mass:  # nothing moves any more, now or later
            break
        right_mass += count / (guesses.made - count) * (grown - wrong_mass)
        wrong_mass = grown
    return right_mass + wrong_mass > guesses.made / guesses.canaries


def mu_one_run(guesses: Guesses, alpha: float = 0.05) -> float:
    """The largest mu such that one run contradicts mu-GDP at level `alpha`.

    >>> round(mu_one_run(Guesses(1000, 200, 180)), 4)
    0.6982
    """
    return _largest_rejected(lambda mu: contradicts(guesses, lambda tpr: float(ndtr(ndtri(tpr) - mu)), alpha))


def epsilon_one_run_gdp(guesses: Guesses, delta: float, alpha: float = 0.05) -> float:
    """The epsilon of `mu_one_run`, for a mechanism that is Gaussian or nearly so.

    >>> round(epsilon_one_run_gdp(Guesses(1000, 200, 180), delta=1e-5), 3)
    2.901
    """
    return gdp_epsilon(mu_one_run(guesses, alpha), delta)


def _largest_rejected(rejected: Callable[[float], bool]) -> float:
    """Bisection for the edge between rejected (small) and not rejected (large) claims."""
    if not rejected(0.0):
        return 0.0
    low, high = 0.0, MOST
    while high - low > 1e-7:
        middle = (low + high) / 2
        low, high = (middle, high) if rejected(middle) else (low, middle)
    return low
