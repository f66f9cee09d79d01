"""SelectiveToy release, audited: charging accepted updates only is refuted in seconds, the proved charges are not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

from reticent.accounting import (
    AnnealedRelease,
    Event,
    Gaussian,
    SelectiveAttempt,
    SelectiveRelease,
    Subsampled,
)
from reticent.audits.claims import contradiction, ledger_claim, promising_thresholds
from reticent.audits.counts import Evidence
from reticent.audits.selective import annealing_toy, dpsur_toy

RUNS = 5000
ANNEALING = annealing_toy(rate=0.05, noise_multiplier=2.0, max_rejections=10, steps=100, high=3.0)
DPSUR = dpsur_toy(rate=0.1, noise_multiplier=2.0, validation_noise=0.8, beta=-2.0, steps=60, low=-3.6, high=3.68)
CANDIDATE = {"annealing": Subsampled(0.05, Gaussian(2.0)), "dpsur": Subsampled(0.1, Gaussian(2.0))}
VALIDATION = Subsampled(0.001, Gaussian(0.8))
ATTEMPT = SelectiveAttempt(0.1, 2.0, 0.001, accept_low=DPSUR.disliked, accept_high=DPSUR.liked)


@pytest.fixture(scope="module")
def annealing() -> Evidence:
    return ANNEALING.evidence(RUNS, seed=0)


@pytest.fixture(scope="module")
def dpsur() -> Evidence:
    return DPSUR.evidence(RUNS, seed=0)


def contradicted(evidence: Evidence, events: dict[Event, int]) -> bool:
    claim = ledger_claim(events)
    assert claim is not None
    assert math.isfinite(claim.epsilon(1e-5))
    tried, rest = evidence.split(0.3)
    return contradiction(rest, claim, promising_thresholds(tried, claim)) is not None


def test_charging_accepted_updates_only_is_refuted_for_annealing(annealing: Evidence) -> None:
    assert contradicted(annealing, {CANDIDATE["annealing"]: 100})


def test_charging_accepted_updates_only_is_refuted_for_dpsur(dpsur: Evidence) -> None:
    """Gradient and test are both charged, but only where the update was kept: the paper's theorem 5.6."""
    assert contradicted(dpsur, {CANDIDATE["dpsur"]: 60, VALIDATION: 60})


def test_the_proved_charges_of_annealing_are_not_contradicted(annealing: Evidence) -> None:
    assert not contradicted(annealing, {AnnealedRelease(0.05, 2.0, 10): 100})
    assert not contradicted(annealing, {CANDIDATE["annealing"]: 1100})  # every candidate there can be


def test_the_proved_charge_of_dpsur_with_hidden_attempts_is_not_contradicted(dpsur: Evidence) -> None:
    assert not contradicted(dpsur, {SelectiveRelease(ATTEMPT): 60})


def test_the_proved_charge_of_dpsur_by_attempts_is_not_contradicted() -> None:
    """Route S: the number of attempts is fixed and every rejection is seen."""
    attempts = 600
    seen = dpsur_toy(0.1, 2.0, 0.8, -2.0, attempts, -3.6, 3.68).evidence(RUNS, seed=1, rejections_seen=True)
    assert not contradicted(seen, {ATTEMPT: attempts})


def test_plain_steps_are_told_apart_exactly_as_well_as_their_claim_permits() -> None:
    """With nothing ever rejected the toy is DP-SGD: the plain charge holds, and a smaller one does not."""
    plain = annealing_toy(rate=0.05, noise_multiplier=2.0, max_rejections=0, steps=100, high=3.0)
    evidence = plain.evidence(20_000, seed=2)
    assert not contradicted(evidence, {CANDIDATE["annealing"]: 100})
    assert contradicted(evidence, {CANDIDATE["annealing"]: 60})


def test_the_toys_law_is_that_of_the_formula(rng: np.random.Generator) -> None:
    """Accepted density: p(d) a(d) / Z."""
    accepted = DPSUR.accepted(2000, False, rng).ravel()
    tails = ndtr(-3.6 / 2) + ndtr(-3.68 / 2)
    liked, disliked = tails * DPSUR.liked, (1 - tails) * DPSUR.disliked
    in_tails = ((accepted < -3.6) | (accepted > 3.68)).sum()
    assert stats.binomtest(int(in_tails), accepted.size, liked / (liked + disliked)).pvalue > 1e-4


@pytest.mark.parametrize(("ratio", "expected"), [(24.0389, 5.3961), (1.0, 4.3772)])
def test_the_closed_form_of_one_step(ratio: float, expected: float) -> None:
    """One full-batch step, final model only: delta(epsilon) of the accepted law, present over absent and back."""
    cut, sigma = 1.75, 1.0
    w = np.linspace(-14, 15, 400_001)
    accept = np.where(w > cut, ratio, 1.0)
    absent, present = (stats.norm.pdf(w, shift, sigma) * accept for shift in (0.0, 1.0))
    absent, present = absent / np.trapezoid(absent, w), present / np.trapezoid(present, w)

    def delta(epsilon: float) -> float:
        sides = ((absent, present), (present, absent))
        return max(np.trapezoid(np.maximum(p - math.exp(epsilon) * q, 0), w) for p, q in sides)

    assert delta(expected - 0.005) > 1e-5 > delta(expected + 0.005)
