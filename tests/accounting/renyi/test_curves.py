"""Renyi curves of the other events, and what must hold of any curve."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.rdp import rdp_privacy_accountant as library

from reticent.accounting import (
    ORDERS,
    AnnealedRelease,
    Composed,
    Concentrated,
    Event,
    Gaussian,
    Laplace,
    NoisyMax,
    SelectiveRelease,
    Subsampled,
    Unbounded,
    curve,
)
from reticent.accounting.renyi.conversions import to_epsilon
from reticent.accounting.renyi.curves import why_infinite
from reticent.accounting.selective.corners import noisy_test


@pytest.mark.parametrize("scale", [0.05, 0.5, 1.0, 7.0])
def test_laplace_equals_the_library(scale: float) -> None:
    accountant = library.RdpAccountant(list(ORDERS))
    accountant.compose(dp_event.LaplaceDpEvent(scale))
    np.testing.assert_allclose(curve(Laplace(scale)), accountant._rdp, rtol=1e-9)


def test_subsampled_laplace_is_the_integral() -> None:
    rate, scale, order = 0.2, 1.5, 3.0
    z = np.linspace(-80, 80, 2_000_001)
    absent, moved = (np.exp(-np.abs(z - mean) / scale) / (2 * scale) for mean in (0, 1))
    ratio = 1 - rate + rate * moved / absent
    exact = math.log(float(np.trapezoid(absent * ratio**order, z))) / (order - 1)
    found = curve(Subsampled(rate, Laplace(scale)), np.array([2.5, order]))
    assert found[1] == pytest.approx(exact, rel=1e-6)
    assert found[0] < found[1]


def test_a_pure_choice_costs_at_most_its_zcdp_and_its_epsilon() -> None:
    for epsilon in (1e-6, 0.1, 1.0, 5.0):
        cost = curve(NoisyMax(epsilon))
        assert (cost <= np.minimum(epsilon, ORDERS * epsilon**2 / 2) * (1 + 1e-12)).all()
        assert (cost > 0).all()


def test_compositions_add_and_concentration_is_linear() -> None:
    parts = (Gaussian(2.0), Laplace(3.0))
    np.testing.assert_allclose(curve(Composed(parts)), curve(parts[0]) + curve(parts[1]))
    np.testing.assert_allclose(curve(Concentrated(0.5)), 0.5 * ORDERS)
    np.testing.assert_allclose(curve(Concentrated(0.125)), curve(Gaussian(2.0)))


@pytest.mark.parametrize(
    "event",
    [
        Unbounded("nobody proved it"),
        Gaussian(0.0),
        Laplace(0.0),
        Subsampled(0.1, Gaussian(0.0)),
        Subsampled(0.1, Composed((Laplace(1.0), Gaussian(1.0)))),
        Subsampled(0.1, SelectiveRelease(noisy_test(0.1, 1.0, 0.1, 1.0, -1.0))),
        Subsampled(0.5, AnnealedRelease(0.1, 1.0, 3)),
        Composed((Gaussian(1.0), Unbounded("half of it"))),
    ],
)
def test_what_is_not_proved_is_infinite_and_says_why(event: Event) -> None:
    assert np.isinf(curve(event)).all()
    assert why_infinite(event)


def test_a_curve_cannot_be_written_into() -> None:
    with pytest.raises(ValueError, match="read-only"):
        curve(Gaussian(1.0))[0] = 0.0


def test_a_finer_set_of_orders_gains_little() -> None:
    fine = np.concatenate([np.arange(1.05, 64, 0.05), np.arange(64.0, 513.0)])
    for rate, noise, steps in ((0.01, 1.0, 1000), (0.1, 5.0, 30), (0.001, 0.7, 30_000)):
        step = Subsampled(rate, Gaussian(noise))
        ours, finer = (to_epsilon(orders, steps * curve(step, orders), 1e-5)[0] for orders in (ORDERS, fine))
        assert 0.9999 * finer <= ours <= 1.01 * finer
