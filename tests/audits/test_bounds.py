"""Estimators: reference values, and coverage of the auditor herself."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import ndtr, ndtri

from reticent.attacks.intervals import rates_at_most
from reticent.audits.bounds import epsilon_credible, epsilon_lower, epsilon_under_gdp, mu_lower
from reticent.audits.counts import Counts, Evidence
from reticent.audits.gaussian import gdp_delta, gdp_epsilon


@pytest.mark.parametrize(
    ("mu", "at_5", "at_6"),
    [
        (0.25, 0.9263, 1.0607),
        (0.5, 1.9931, 2.2541),
        (1, 4.3772, 4.8866),
        (2, 9.9973, 10.9972),
        (3, 16.6755, 18.1634),
        (4, 24.3816, 26.357),
    ],
)
def test_epsilon_of_mu_gdp(mu: float, at_5: float, at_6: float) -> None:
    assert gdp_epsilon(mu, 1e-5) == pytest.approx(at_5, abs=1e-4)
    assert gdp_epsilon(mu, 1e-6) == pytest.approx(at_6, abs=1e-3)


@given(st.floats(0.05, 5), st.floats(1e-9, 0.2))
def test_epsilon_and_delta_of_mu_gdp_are_inverse(mu: float, delta: float) -> None:
    epsilon = gdp_epsilon(mu, delta)
    if epsilon > 0:
        assert gdp_delta(mu, epsilon) == pytest.approx(delta, rel=1e-6)


def test_delta_of_mu_gdp_is_the_hockey_stick_integral() -> None:
    z = np.linspace(-12, 13, 200_001)
    stick = np.maximum(stats.norm.pdf(z, 1.5) - math.exp(2.0) * stats.norm.pdf(z), 0)
    assert gdp_delta(1.5, 2.0) == pytest.approx(np.trapezoid(stick, z), rel=1e-6)


def expected_counts(mu: float, runs: int, cut: float) -> Counts:
    return Counts(round(runs * ndtr(-cut)), runs, round(runs * ndtr(mu - cut)), runs)


@pytest.mark.parametrize(
    ("mu", "runs", "by_gdp", "by_counting"),
    [
        (0.5, 1000, 1.305, 0.494),
        (1, 1000, 3.56, 1.418),
        (1, 20_000, 4.193, 2.369),
        (2, 5000, 9.483, 4.105),
        (2, 100_000, 9.882, 5.518),
        (4, 20_000, 23.8, 7.807),
    ],
)
def test_bounds_at_expected_counts_and_the_best_threshold(
    mu: float, runs: int, by_gdp: float, by_counting: float
) -> None:
    cuts = np.linspace(-1, mu + 4, 400)
    gdp = max(epsilon_under_gdp(expected_counts(mu, runs, cut), 1e-5) for cut in cuts)
    counting = max(epsilon_lower(expected_counts(mu, runs, cut), 1e-5) for cut in cuts)
    assert gdp == pytest.approx(by_gdp, rel=0.02)
    assert counting == pytest.approx(by_counting, rel=0.02)


def test_counting_cannot_see_past_the_logarithm_of_the_runs() -> None:
    perfect = Counts(0, 1000, 1000, 1000)
    assert epsilon_lower(perfect, 0.0) == pytest.approx(math.log(1000 / 3.7), abs=0.02)


def test_the_credible_interval_is_narrower_where_counting_says_nothing() -> None:
    """487 true positives, 1 true negative, 512 false positives, 0 false negatives (Zanella-Beguelin et al. 2023)."""
    counts = Counts(false_positives=512, absent=513, true_positives=487, present=487)
    low, high = epsilon_credible(counts, 1e-5, alpha=0.1)
    assert low == pytest.approx(0.145, abs=0.005)
    assert high == pytest.approx(6.399, abs=0.05)
    assert epsilon_lower(counts, 1e-5, alpha=0.1) == 0.0


RUNS = 5000
Z_AT_MOST = ndtri(rates_at_most(np.arange(RUNS + 1), RUNS, 0.025))


def mus(evidence: Evidence, cuts: np.ndarray) -> np.ndarray:
    """`mu_lower` at every cut, by looking up the bound of each count."""
    wrong = RUNS - np.searchsorted(np.sort(evidence.absent), cuts)
    missed = np.searchsorted(np.sort(evidence.present), cuts)
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(-Z_AT_MOST[wrong] - Z_AT_MOST[missed], nan=-np.inf)


def honest(evidence: Evidence) -> float:
    """The threshold comes from other runs than those that certify."""
    tried, judged = evidence.split()
    cuts = np.r_[tried.absent, tried.present]
    return mu_lower(judged.count(cuts[np.argmax(mus(tried, cuts))]))


def cheating(evidence: Evidence) -> float:
    """The threshold comes from the runs that certify."""
    _, judged = evidence.split()
    return float(mus(judged, np.r_[judged.absent, judged.present]).max())


def error_p_value(auditor: object, audits: int = 500) -> float:
    """How compatible the auditor's errors are with an error rate of at most 5 %, on an exact Gaussian mechanism."""
    rng = np.random.default_rng(5)
    wrong = sum(
        auditor(Evidence(rng.normal(0, 1, 2 * RUNS), rng.normal(1, 1, 2 * RUNS))) > 1.0  # type: ignore[operator]
        for _ in range(audits)
    )
    return float(stats.binomtest(wrong, audits, 0.05, alternative="greater").pvalue)


def test_an_honest_auditor_errs_in_at_most_one_audit_of_twenty() -> None:
    assert error_p_value(honest) > 1e-3


def test_an_auditor_who_picks_the_threshold_on_the_certifying_runs_is_caught() -> None:
    assert error_p_value(cheating) < 1e-3
