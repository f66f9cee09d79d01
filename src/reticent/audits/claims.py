"""Claims: a trade-off curve that a mechanism is said to have, and the test that contradicts it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from reticent.accounting import ORDERS, Event, Gaussian, Subsampled, Unbounded, curve
from reticent.accounting.losses import pld
from reticent.accounting.losses.distribution import Loss
from reticent.accounting.renyi.conversions import to_delta
from reticent.attacks.intervals import Floats, rates_at_least, rates_at_most
from reticent.audits.counts import Evidence
from reticent.audits.gaussian import gdp_delta

EPSILONS: Floats = np.concatenate([[0.0], np.geomspace(1e-4, 50.0, 1200)])
"""Fine near zero, for steps that reveal little."""


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

    def most_tpr(self, fpr: npt.ArrayLike) -> Floats:
        """The largest true positive rate the claim permits at each false positive rate.

        >>> gaussian_claim(1.0).most_tpr([0.0, 0.5]).round(3)
        array([0.   , 0.841])
        """
        rates = np.asarray(fpr, dtype=np.float64)[..., None]
        upper = np.exp(self.epsilons) * rates + self.present
        lower = 1 - np.exp(-self.epsilons) * (1 - rates - self.absent)
        return np.asarray(np.clip(np.minimum(upper, lower).min(axis=-1), 0.0, 1.0), dtype=np.float64)

    def least_fpr(self, tpr: float) -> float:
        """The smallest false positive rate the claim permits at a true positive rate: the same curve read backwards.

        >>> round(gaussian_claim(1.0).least_fpr(0.5), 3)
        0.159
        """
        upper = np.exp(-self.epsilons) * (tpr - self.present)
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


def ledger_claim(events: Mapping[Event, int]) -> Claim | None:
    """The claim that what the ledger holds costs what the accountant says; None where nothing is claimed.

    >>> from reticent.accounting import Gaussian
    >>> round(ledger_claim({Gaussian(1.0): 1}).epsilon(1e-5), 1)
    4.4
    """
    if not events or any(isinstance(event, Unbounded) for event in events):
        return None
    match list(events.items()):  # one step has a closed form; its loss distribution would take seconds
        case [(Gaussian(noise), count)]:
            return step_claim(1.0, noise / math.sqrt(count))
        case [(Subsampled(rate, Gaussian(noise)), 1)]:
            return step_claim(rate, noise)
    if all(pld.has_pld(event) for event in events):
        present, absent = pld.distribution(events)
        return Claim(EPSILONS, _deltas(present), _deltas(absent))
    spent = np.sum([count * curve(event) for event, count in events.items()], axis=0)
    return Claim.of(lambda epsilons: np.array([to_delta(ORDERS, spent, float(e)) for e in epsilons]))


def _deltas(loss: Loss) -> Floats:
    """The hockey-stick divergence of a loss distribution on the whole grid, by two sums from the far end."""
    values = loss.values
    mass, values = loss.mass[values > 0], values[values > 0]
    beyond = np.concatenate([np.cumsum(mass[::-1])[::-1], [0.0]])
    shrunk = np.concatenate([np.cumsum((mass * np.exp(-values))[::-1])[::-1], [0.0]])
    first = np.searchsorted(values, EPSILONS, side="right")
    deltas = loss.infinite + beyond[first] - np.exp(EPSILONS) * shrunk[first]
    return np.asarray(np.maximum(deltas, 0.0), dtype=np.float64)


@dataclass(frozen=True)
class Contradiction:
    """A threshold at which the runs are better told apart than the claim permits."""

    threshold: float
    fpr_at_most: float
    tpr_at_least: float
    permitted: float

    @property
    def excess(self) -> float:
        """By how much the claim is broken at least."""
        return self.tpr_at_least - self.permitted


def contradiction(
    evidence: Evidence, claim: Claim, thresholds: Sequence[float], alpha: float = 0.05
) -> Contradiction | None:
    """The strongest contradiction of the claim at thresholds fixed without this evidence, or None.

    Promise: a true claim is contradicted with chance at most `alpha` (Bonferroni over thresholds, both rates).

    >>> same = np.random.default_rng(0).normal(size=2000)
    >>> contradiction(Evidence(same, same + 3), gaussian_claim(1.0), [1.5]) is None
    False
    """
    found = _excesses(evidence, claim, np.asarray(thresholds, dtype=np.float64), alpha / (2 * len(thresholds)))
    worst = max(found, key=lambda one: one.excess)
    return worst if worst.excess > 0 else None


def promising_thresholds(tried: Evidence, claim: Claim, count: int = 2) -> list[float]:
    """The thresholds that contradict the claim best on runs that will not be used again."""
    levels = np.linspace(0.005, 0.995, 100)
    cuts = np.unique(np.concatenate([np.quantile(side, levels) for side in (tried.absent, tried.present)]))
    rated = sorted(_excesses(tried, claim, cuts, 0.05), key=lambda one: -one.excess)
    return [one.threshold for one in rated[:count]]


def _excesses(evidence: Evidence, claim: Claim, thresholds: Floats, level: float) -> list[Contradiction]:
    """How far the surely reached rates lie above what is permitted, at each threshold."""
    absent, present = np.sort(evidence.absent), np.sort(evidence.present)
    fpr = rates_at_most(len(absent) - np.searchsorted(absent, thresholds), len(absent), level)
    tpr = rates_at_least(len(present) - np.searchsorted(present, thresholds), len(present), level)
    rows = zip(thresholds, fpr, tpr, claim.most_tpr(fpr), strict=True)
    return [Contradiction(*(float(value) for value in row)) for row in rows]
