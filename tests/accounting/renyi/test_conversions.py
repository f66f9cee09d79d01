"""From Renyi curves to epsilon and delta, there and back."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from reticent.accounting import (
    Gaussian,
    Subsampled,
    curve,
)
from reticent.accounting.renyi.conversions import to_delta, to_epsilon

PAPER = np.arange(2, 65, dtype=float)


def test_conversions_are_inverse() -> None:
    rdp = 100 * curve(Subsampled(0.05, Gaussian(1.0)), PAPER)
    for delta in (1e-3, 1e-5, 1e-9):
        found, _ = to_epsilon(PAPER, rdp, delta)
        assert to_delta(PAPER, rdp, found) == pytest.approx(delta, rel=1e-9)
    old, new = (to_epsilon(PAPER, rdp, 1e-5, name)[0] for name in ("old", "new"))
    assert new < old


@pytest.mark.parametrize("order", [1.1, 2.0, 17.0, 300.0])
def test_the_newer_conversion_holds_loss_by_loss(order: float) -> None:
    """What its proof rests on: the hockey stick lies under an exponential, which touches it."""
    above = np.linspace(-1, 3, 100_001)  # loss minus epsilon
    stick = np.maximum(-np.expm1(-above), 0.0)
    exponential = (1 - 1 / order) ** (order - 1) / order * np.exp(np.minimum((order - 1) * above, 700.0))
    assert (stick <= exponential * (1 + 1e-12)).all()
    assert (stick / exponential).max() > 1 - 1e-4  # they touch where the loss is log(order / (order - 1)) above


@pytest.mark.parametrize("noise", [0.5, 2.0, 20.0])
def test_no_conversion_undercuts_the_gaussian(noise: float) -> None:
    rdp = curve(Gaussian(noise), PAPER)
    for epsilon in (0.01, 0.3, 2.0, 9.0):
        exact = ndtr(0.5 / noise - epsilon * noise) - np.exp(epsilon) * ndtr(-0.5 / noise - epsilon * noise)
        assert to_delta(PAPER, rdp, epsilon) >= exact
    for name in ("old", "new"):
        proved, _ = to_epsilon(PAPER, rdp, 1e-5, name)
        assert ndtr(0.5 / noise - proved * noise) - np.exp(proved) * ndtr(-0.5 / noise - proved * noise) <= 1e-5
