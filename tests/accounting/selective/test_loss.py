"""Selective release by loss distributions: the plain loss where there is no choice, and a search for larger ones."""

from __future__ import annotations

import math

import numpy as np
import pytest

from reticent.accounting import (
    SelectiveAttempt,
)
from reticent.accounting.losses.gaussian import gaussian_loss
from reticent.accounting.selective.loss import attempt_loss

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
