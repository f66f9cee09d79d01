"""Loss distributions on a grid: composed exactly, rounded upwards only."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from reticent.accounting import Gaussian
from reticent.accounting.losses.distribution import Loss, compose, trim
from reticent.accounting.losses.gaussian import gaussian_loss
from reticent.accounting.losses.pld import FINE, _grid_step


def test_composition_is_convolution() -> None:
    loss = Loss(0.5, -1, np.array([0.2, 0.5, 0.3]), 0.0)
    three = compose([loss], [3])
    direct = np.convolve(np.convolve(loss.mass, loss.mass), loss.mass)
    np.testing.assert_allclose(three.mass, direct, atol=1e-12)
    assert three.lowest == -3
    mixed = compose([loss, loss], [2, 1])
    np.testing.assert_allclose(mixed.mass, direct, atol=1e-12)


def test_rounding_only_ever_adds_loss() -> None:
    fine, coarse = (compose([gaussian_loss(0.1, 2.0, step)[0]], [100]) for step in (1e-3, 2e-2))
    for place in (0.0, 0.5, 1.0, 2.0):
        assert fine.delta(place) <= coarse.delta(place) * (1 + 1e-9)


def test_trimming_only_ever_adds_loss() -> None:
    loss = gaussian_loss(0.1, 2.0, 1e-3)[0]
    short = trim(loss, 1e-3)
    assert len(short.mass) < len(loss.mass)
    assert short.mass.sum() + short.infinite == pytest.approx(loss.mass.sum() + loss.infinite)
    for place in (-0.1, 0.0, 0.2, 1.0):
        assert short.delta(place) >= loss.delta(place) - 1e-15


def test_both_ways_to_delta_agree() -> None:
    loss = compose([gaussian_loss(0.1, 2.0, 1e-2)[0]], [30])
    np.testing.assert_allclose(loss.deltas()[::50], [loss.delta(value) for value in loss.values[::50]], atol=1e-12)


def test_a_loss_that_may_be_infinite_has_no_epsilon_below_it() -> None:
    loss = Loss(0.1, 0, np.array([0.9]), 0.1)
    assert math.isinf(loss.epsilon(0.05))
    assert loss.epsilon(0.1) == 0.0


@pytest.mark.parametrize("steps", [1, 100, 10_000, 1_000_000])
@pytest.mark.parametrize("mu", [0.1, 1.0, 5.0])
def test_a_composition_is_never_below_the_closed_form(steps: int, mu: float) -> None:
    """Many Gaussians are one: wherever delta lies, down to where truncation and rounding are all there is to it."""
    step = _grid_step({Gaussian(math.sqrt(steps) / mu): steps}, FINE)
    composed = compose([gaussian_loss(1.0, math.sqrt(steps) / mu, step)[0]], [steps])
    for deviations in (0.0, 2.0, 4.0, 5.0, 6.0, 7.0, 7.5):
        place = mpmath.mpf(mu) * (mpmath.mpf(mu) / 2 + deviations)
        near, far = (mpmath.ncdf(sign * mpmath.mpf(mu) / 2 - place / mu) for sign in (1, -1))
        exact = float(near - mpmath.exp(place) * far)
        assert exact <= composed.delta(float(place)) <= exact * 1.07 + 2 * composed.infinite
    assert composed.infinite <= 1e-14 + 5e-17 * steps
