"""Claims: a trade-off curve that a mechanism is said to have, and the test that contradicts it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from reticent.attacks.intervals import Floats
from reticent.audits.counts import Counts, Evidence
from reticent.audits.gaussian import gdp_delta

EPSILONS: Floats = np.unique(np.concatenate([np.linspace(0.0, 50.0, 2001), np.geomspace(1e-4, 50.0, 2000)]))
"""Fine near zero for weak steps, fine everywhere for strong ones."""


@dataclass(frozen=True, eq=False)
class Claim:
    """delta(epsilon) in both directions: canary present over absent, and absent over present.

    Any grid of epsilons is sound: fewer points permit more.
    """

    epsilons: Floats
    present: Floats
    absent: Floats

    @staticmethod
    def of(delta: Callable[[Floats], Floats]) -> Claim:
        """The claim of a guarantee that does not tell the two directions apart."""
        deltas = np.asarray(delta(EPSILONS), dtype=np.float64)
        return Claim(EPSILONS, deltas, deltas)

    def most_tpr(self, fpr: float) -> float:
        """The largest true positive rate the claim permits at a false positive rate.

        >>> round(gaussian_claim(1.0).most_tpr(0.5), 3)
        0.841
        """
        with np.errstate(over="ignore"):
            upper = np.exp(self.epsilons) * fpr + self.present
        lower = 1 - np.exp(-self.epsilons) * (1 - fpr - self.absent)
        return float(np.clip(min(upper.min(), lower.min()), 0.0, 1.0))

    def least_fpr(self, tpr: float) -> float:
        """The smallest false positive rate the claim permits at a true positive rate, the same curve read backwards.

        >>> round(gaussian_claim(1.0).least_fpr(0.5), 3)
        0.159
        """
        upper = np.exp(-self.epsilons) * (tpr - self.present)
        with np.errstate(over="ignore"):
            lower = 1 - self.absent - np.exp(self.epsilons) * (1 - tpr)
        return float(np.clip(max(upper.max(), lower.max()), 0.0, 1.0))

    def epsilon(self, delta: float) -> float:
        """The epsilon at which the worse direction falls to `delta`, log-linear between the points of the grid."""
        worse = np.log(np.maximum(np.maximum(self.present, self.absent), np.finfo(np.float64).tiny))
        if worse[-1] > math.log(delta):
            return math.inf
        return float(np.interp(-math.log(delta), -worse, self.epsilons))


def gaussian_claim(mu: float) -> Claim:
    """The claim of mu-GDP: a full-batch Gaussian step with noise multiplier 1 / mu."""
    return Claim.of(lambda epsilons: np.array([gdp_delta(mu, float(epsilon)) for epsilon in epsilons]))


def step_claim(rate: float, noise_multiplier: float) -> Claim:
    """The exact claim of one Poisson-sampled Gaussian step, add-or-remove-one (Zhu, Dong & Wang 2022, dominating pair).

    >>> round(step_claim(1.0, 1.0).epsilon(1e-5), 2)
    4.38
    """
    epsilons, s = EPSILONS, noise_multiplier

    def tail(cut: Floats, shift: float) -> Floats:
        return np.asarray(ndtr((shift - cut) / s), dtype=np.float64)

    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        cut = s * s * np.log((np.expm1(epsilons) + rate) / rate) + 0.5
        present = (1 - rate) * tail(cut, 0) + rate * tail(cut, 1) - np.exp(epsilons) * tail(cut, 0)
        reached = np.expm1(-epsilons) + rate
        cut = s * s * np.log(np.maximum(reached, 0.0) / rate) + 0.5
        mixed = (1 - rate) * (1 - tail(cut, 0)) + rate * (1 - tail(cut, 1))
        absent = 1 - tail(cut, 0) - np.exp(epsilons) * mixed
    absent = np.where(reached > 0, absent, 0.0)
    return Claim(epsilons, np.maximum(np.nan_to_num(present), 0.0), np.maximum(np.nan_to_num(absent), 0.0))


@dataclass(frozen=True)
class Contradiction:
    """A threshold at which the runs are better told apart than the claim permits."""

    threshold: float
    fpr_at_most: float
    tpr_at_least: float
    permitted: float


def contradiction(
    evidence: Evidence, claim: Claim, thresholds: Sequence[float], alpha: float = 0.05
) -> Contradiction | None:
    """The strongest contradiction of the claim at thresholds fixed without this evidence, or None.

    Promise: a true claim is contradicted with chance at most `alpha` (Bonferroni over thresholds, both rates).

    >>> same = np.random.default_rng(0).normal(size=2000)
    >>> contradiction(Evidence(same, same + 3), gaussian_claim(1.0), [1.5]) is None
    False
    """
    level = alpha / (2 * len(thresholds))
    found = [_excess(evidence.count(threshold), claim, threshold, level) for threshold in thresholds]
    worst = max(found, key=lambda one: one.tpr_at_least - one.permitted)
    return worst if worst.tpr_at_least > worst.permitted else None


def _excess(counts: Counts, claim: Claim, threshold: float, level: float) -> Contradiction:
    fpr, tpr = counts.fpr_at_most(level), counts.tpr_at_least(level)
    return Contradiction(threshold, fpr, tpr, claim.most_tpr(fpr))


def promising_thresholds(tried: Evidence, claim: Claim, count: int = 2) -> list[float]:
    """The thresholds that contradict the claim best on runs that will not be used again."""
    levels = np.linspace(0.005, 0.995, 100)
    candidates = np.unique(np.concatenate([np.quantile(side, levels) for side in (tried.absent, tried.present)]))
    rated = [_excess(tried.count(float(cut)), claim, float(cut), 0.05) for cut in candidates]
    rated.sort(key=lambda one: one.permitted - one.tpr_at_least)
    return [one.threshold for one in rated[:count]]
