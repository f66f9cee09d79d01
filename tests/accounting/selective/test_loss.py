"""Selective release by loss distributions: the plain loss where there is no choice, and a search for larger ones."""

from __future__ import annotations

import math

import numpy as np
import pytest

from reticent.accounting import SelectiveAttempt
from reticent.accounting.losses.gaussian import gaussian_loss
from reticent.accounting.losses.pair import log_absent, log_ratio
from reticent.accounting.selective.corners import corners
from reticent.accounting.selective.loss import attempt_loss, dropped_chain, kept_chain

SEARCHES = [
    (0.02, 1.0, 0.0, 3.0, None),
    (0.02, 1.0, 0.3, 4.0, 0.3),
    (0.2, 2.0, 0.5, 1.5, None),
    (1.0, 3.0, 0.05, 3.0, None),
]


@pytest.mark.parametrize(("rate", "noise", "test_rate", "k", "smooth"), SEARCHES)
def test_no_test_has_a_larger_hockey_stick(
    searched, rate: float, noise: float, test_rate: float, k: float, smooth: float | None
) -> None:
    attempt = SelectiveAttempt(rate, noise, test_rate, 0.6 / k, 0.6, smooth)
    rng = np.random.default_rng(8)
    for sign, loss in zip((1, -1), attempt_loss(attempt, 1e-3), strict=True):
        found = searched(attempt, sign)
        before, after = found.policies(rng, 3000)
        b, c = before @ found.q, after @ found.p
        for place in (-0.2, 0.0, 0.05, 0.3):
            gap = np.maximum(found.p * after - math.exp(place) * found.q * before, 0.0).sum(axis=1)
            gap += np.maximum((1 - c) - math.exp(place) * (1 - b), 0.0)
            assert gap.max() <= loss.delta(place) + 1e-9


def test_a_test_that_accepts_everything_has_the_plain_loss() -> None:
    step = 1e-3
    always = attempt_loss(SelectiveAttempt(0.1, 2.0, 0.3, 1.0, 1.0), step)
    for ours, plain in zip(always, gaussian_loss(0.1, 2.0, step), strict=True):
        for place in (-0.3, 0.0, 0.01, 0.1, 0.5):
            assert ours.delta(place) == pytest.approx(plain.delta(place), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("epsilon", [-0.5, 0.0, 1.0])
def test_a_chain_is_the_best_corner_at_every_ratio(attempt, epsilon: float) -> None:
    log_r, cut = np.linspace(-4, 6, 2001)[:, None], math.exp(epsilon)
    for corner in corners(attempt):
        gains = np.exp(log_r) * corner.after - cut * corner.before
        kept, dropped = kept_chain(corner), dropped_chain(corner)
        by_steps = (log_r > epsilon + kept.thresholds) * (np.exp(log_r) * kept.after - cut * kept.before)
        np.testing.assert_allclose(by_steps.sum(axis=1), np.maximum(gains.max(axis=1), 0.0), atol=1e-12)
        by_steps = (log_r < epsilon + dropped.thresholds) * (cut * dropped.before - np.exp(log_r) * dropped.after)
        np.testing.assert_allclose(by_steps.sum(axis=1), np.maximum((-gains).max(axis=1), 0.0), atol=1e-12)


def worst(attempt: SelectiveAttempt, sign: int, epsilon: float) -> float:
    """Theorem P as it stands: both integrals over a fine grid of outcomes."""
    noise = attempt.noise_multiplier
    z = np.linspace(-12 * noise - 1, 12 * noise + 2, 200_001)
    absent = np.exp(log_absent(z, noise)) * (z[1] - z[0])
    present = absent * np.exp(log_ratio(z, attempt.rate, noise))
    p, q = (present, absent) if sign == 1 else (absent, present)
    corner = corners(attempt)[0 if sign == 1 else 1]
    gains = corner.after[:, None] * p - math.exp(epsilon) * corner.before[:, None] * q
    kept, dropped = (np.maximum(side.max(axis=0), 0.0).sum() for side in (gains, -gains))
    return max(kept, dropped - math.expm1(epsilon))


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.7])
def test_the_loss_is_the_worst_case_of_theorem_p(attempt, epsilon: float) -> None:
    for sign, loss in zip((1, -1), attempt_loss(attempt, 1e-3), strict=True):
        exact = worst(attempt, sign, epsilon)
        assert exact - 1e-9 <= loss.delta(epsilon) <= exact * 1.001 + 1e-6


def test_a_test_that_hardly_ever_accepts_has_all_its_corners() -> None:
    """Chances far below rounding of 1: what is told when one does happen is as much as ever."""
    attempt = SelectiveAttempt(0.5, 1.0, 0.5, 1e-18, 1e-16)
    for sign, loss in zip((1, -1), attempt_loss(attempt, 1e-2), strict=True):
        assert loss.delta(0.5) == pytest.approx(worst(attempt, sign, 0.5), rel=1e-2)
