"""Bounds: the epsilon that counts of right and wrong calls prove, or suggest."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

from reticent.attacks.intervals import Floats
from reticent.audits.counts import Counts
from reticent.audits.gaussian import gdp_epsilon


def epsilon_lower(counts: Counts, delta: float, alpha: float = 0.05) -> float:
    """A lower bound on epsilon by Clopper-Pearson, half of `alpha` for each rate (Jagielski et al. 2020).

    Promise: at a threshold fixed without these runs, it exceeds the true epsilon with chance at most `alpha`.

    >>> round(epsilon_lower(Counts(0, 1000, 1000, 1000), delta=0.0), 2)
    5.6
    """
    fpr, fnr = counts.fpr_at_most(alpha / 2), counts.fnr_at_most(alpha / 2)
    return max(0.0, _log_ratio(1 - fnr - delta, fpr), _log_ratio(1 - fpr - delta, fnr))


def _log_ratio(above: float, below: float) -> float:
    return math.log(above / below) if above > 0 else -math.inf


def mu_lower(counts: Counts, alpha: float = 0.05) -> float:
    """A lower bound on mu IF the mechanism is Gaussian (Nasr et al. 2023): an estimate, not a proof, for any other.

    >>> round(mu_lower(Counts(0, 1000, 1000, 1000)), 2)
    5.36
    """
    return float(ndtri(1 - counts.fpr_at_most(alpha / 2)) - ndtri(counts.fnr_at_most(alpha / 2)))


def epsilon_under_gdp(counts: Counts, delta: float, alpha: float = 0.05) -> float:
    """The epsilon of `mu_lower`: label it "estimate under GDP" wherever it is shown."""
    return gdp_epsilon(max(mu_lower(counts, alpha), 0.0), delta)


def epsilon_credible(
    counts: Counts, delta: float, alpha: float = 0.05, *, draws: int = 1_000_000, seed: int = 0
) -> tuple[float, float]:
    """A Bayesian credible interval of epsilon under Jeffreys priors (Zanella-Beguelin et al. 2023).

    It is no confidence bound: never reject a claim with it.

    >>> low, high = epsilon_credible(Counts(512, 513, 487, 487), delta=1e-5, alpha=0.1, draws=100_000)
    >>> round(low, 1), round(high, 1)
    (0.1, 6.4)
    """
    rng = np.random.default_rng(seed)
    missed, calm = counts.present - counts.true_positives, counts.absent - counts.false_positives
    fpr = rng.beta(0.5 + counts.false_positives, 0.5 + calm, draws)
    fnr = rng.beta(0.5 + missed, 0.5 + counts.true_positives, draws)
    low, high = np.quantile(_epsilon_of(fpr, fnr, delta), [alpha / 2, 1 - alpha / 2])
    return float(low), float(high)


def _epsilon_of(fpr: Floats, fnr: Floats, delta: float) -> Floats:
    """The smallest epsilon whose privacy region holds the point, mirrored sides included."""
    sides = [(1 - fnr, fpr), (1 - fpr, fnr), (fnr, 1 - fpr), (fpr, 1 - fnr)]
    with np.errstate(divide="ignore"):
        ratios = [np.log(np.maximum(above - delta, 0.0)) - np.log(below) for above, below in sides]
    return np.asarray(np.maximum(np.max(ratios, axis=0), 0.0), dtype=np.float64)
