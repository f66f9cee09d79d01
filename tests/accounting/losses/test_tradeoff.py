"""Delta curves and the power of membership tests."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from reticent.accounting import (
    Gaussian,
    NoisyMax,
    SelectiveAttempt,
    SelectiveRelease,
    Subsampled,
    epsilon,
    mu,
    power,
)
from reticent.accounting.events import Event, Tally
from reticent.accounting.losses.distribution import from_atoms
from reticent.accounting.losses.pld import distribution
from reticent.accounting.simplify import tally

STEPS = {Subsampled(0.1, Gaussian(2.0)): 50}


def delta_of(events: Tally | Iterable[Event], place: float) -> float:
    """The larger delta of both directions."""
    return max(law.delta(place) for law in distribution(tally(events)))


def test_delta_and_epsilon_are_one_curve() -> None:
    for delta in (1e-3, 1e-5, 1e-7):
        assert delta_of(STEPS, epsilon(STEPS, delta)) == pytest.approx(delta, rel=1e-3)
    curve = [delta_of(STEPS, place) for place in np.linspace(0, 5, 20)]
    assert (np.diff(curve) <= 0).all()


def test_a_gaussian_has_the_closed_forms() -> None:
    for place in (0.0, 0.5, 2.0):
        exact = ndtr(0.5 - place) - math.exp(place) * ndtr(-0.5 - place)
        assert delta_of([Gaussian(1.0)], place) == pytest.approx(exact, rel=1e-4)
    fpr = np.array([1e-4, 0.01, 0.1, 0.5, 0.9])
    np.testing.assert_allclose(power([Gaussian(1.0)], fpr), ndtr(ndtri(fpr) + 1), rtol=2e-3)
    assert mu(epsilon([Gaussian(2.0)], 1e-5), 1e-5) == pytest.approx(0.5, rel=1e-3)
    assert mu(1000.0, 1e-5) > 10


def test_power_is_a_trade_off_curve() -> None:
    fpr = np.linspace(0, 1, 101)
    for guess in ("present", "absent", "either"):
        tpr = power(STEPS, fpr, guess)
        assert (tpr >= fpr - 1e-9).all()
        assert (np.diff(tpr) >= -1e-12).all()
        assert guess == "either" or (np.diff(tpr, 2) <= 1e-6).all()  # concave
        assert tpr[-1] == 1
    assert (power(STEPS, fpr, "either") >= power(STEPS, fpr, "present") - 1e-12).all()
    np.testing.assert_array_equal(power([], fpr), fpr)


def test_no_test_beats_the_power() -> None:
    """The likelihood ratio test of ten steps, by simulation: below the curve at every threshold."""
    rng, steps, runs = np.random.default_rng(0), 10, 20_000
    noise = rng.normal(0, 1.0, (2, runs, steps))
    present = noise[1] + (rng.random((runs, steps)) < 0.3)
    scores = [np.log1p(0.3 * np.expm1(z - 0.5)).sum(axis=1) for z in (noise[0], present)]
    cut = np.quantile(scores[0], [0.5, 0.9, 0.99])
    fpr, tpr = ((score[:, None] > cut).mean(axis=0) for score in scores)
    allowed = power({Subsampled(0.3, Gaussian(1.0)): steps}, fpr)
    assert (tpr <= allowed + 4 * np.sqrt(0.25 / runs)).all()
    assert (tpr >= allowed - 0.03).all()  # and it is the best test: the curve is tight


def test_power_without_a_loss_distribution() -> None:
    release = {SelectiveRelease(SelectiveAttempt(0.1, 4.0, 0.01, 0.4, 0.6)): 20}
    fpr = np.array([0.01, 0.1, 0.5])
    assert (power(release, fpr) >= power({Subsampled(0.1, Gaussian(4.0)): 20}, fpr)).all()
    assert (power(release, fpr) <= 1).all()


def test_choices_compose_like_randomised_response() -> None:
    """Ten of them have a binomial loss; the grid errs upwards, in the second order only."""
    choice, count = 0.3, 10
    from scipy.stats import binom

    right = 1 / (1 + math.exp(-choice))
    losses = choice * (2 * np.arange(count + 1) - count)
    masses = binom.pmf(np.arange(count + 1), count, right)
    for place in (0.0, 0.5, 1.5):
        exact = float(masses @ np.maximum(-np.expm1(place - losses), 0.0))
        found = delta_of([NoisyMax(choice)] * count, place)
        assert exact <= found <= exact * 1.001
    assert from_atoms([0.3], [1.0], 0.3).delta(0.0) == pytest.approx(-math.expm1(-0.3))
