"""What a guarantee permits: attained by the mechanisms that are exactly that private, and by none better."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from reticent.attacks.permitted import (
    permitted_accuracy,
    permitted_auc_gaussian,
    permitted_tpr,
    permitted_tpr_gaussian,
)

GRID = np.linspace(0, 1, 2001)


@given(st.floats(0, 8), st.floats(0, 0.2))
def test_randomised_response_lies_on_the_curve(epsilon: float, delta: float) -> None:
    """With chance delta it tells the truth, else it lies with odds e^-epsilon: its two-outcome test is the corner."""
    lie = (1 - delta) / (1 + math.exp(epsilon))
    assert permitted_tpr(np.array([lie]), epsilon, delta)[0] == pytest.approx(1 - lie)


@given(st.floats(0, 8), st.floats(0, 0.2))
def test_the_curve_rises_is_concave_and_above_chance(epsilon: float, delta: float) -> None:
    curve = permitted_tpr(GRID, epsilon, delta)
    assert (np.diff(curve) >= -1e-12).all()
    assert (np.diff(curve, 2) <= 1e-9).all()
    assert (curve >= GRID - 1e-12).all()
    assert (1 + (curve - GRID).max()) / 2 <= permitted_accuracy(epsilon, delta) + 1e-9


def test_balanced_accuracy_is_the_curves_largest_gap() -> None:
    curve = permitted_tpr(GRID, 1.0, 0.01)
    assert (1 + (curve - GRID).max()) / 2 == pytest.approx(permitted_accuracy(1.0, 0.01), abs=1e-3)


@pytest.mark.parametrize("mu", [0.0, 0.5, 2.0])
def test_the_gaussian_curve_is_two_shifted_normals(mu: float) -> None:
    cuts = np.linspace(-4, 4 + mu, 50)
    np.testing.assert_allclose(permitted_tpr_gaussian(ndtr(-cuts), mu), ndtr(mu - cuts), atol=1e-12)
    inner = GRID[1:-1]
    area = np.trapezoid(permitted_tpr_gaussian(inner, mu), inner)
    assert area == pytest.approx(permitted_auc_gaussian(mu), abs=2e-3)


def test_no_guarantee_permits_everything() -> None:
    assert (permitted_tpr(GRID, math.inf, 1e-5) == 1).all()
    assert permitted_accuracy(math.inf, 1e-5) == 1.0
