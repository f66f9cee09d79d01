"""Renyi curves against dp-accounting, direct integration, and what must hold of any curve."""

from __future__ import annotations

import math
import warnings

import mpmath
import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.rdp import rdp_privacy_accountant as library
from hypothesis import given
from hypothesis import strategies as st

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
from reticent.accounting.renyi.curves import why_infinite
from reticent.accounting.selective.corners import noisy_test

WHOLE = ORDERS[np.floor(ORDERS) == ORDERS]

rates = st.floats(-8, 0).map(lambda power: 10.0**power)
noises = st.floats(math.log(0.2), math.log(1000)).map(math.exp)


@pytest.mark.parametrize("rate", [1e-4, 1e-3, 0.01, 0.0341, 0.1, 0.3, 0.5, 0.9, 0.999, 1.0])
@pytest.mark.parametrize("noise", [0.3, 0.8, 1.4, 4.0, 20.0])
def test_whole_orders_equal_the_library(rate: float, noise: float) -> None:
    oracle = library._compute_rdp_poisson_subsampled_gaussian(rate, noise, WHOLE)
    np.testing.assert_allclose(curve(Subsampled(rate, Gaussian(noise)), WHOLE), oracle, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize(
    ("rate", "noise", "order"),
    [
        (0.034, 2.15, 1.5), (0.034, 2.15, 2.5), (0.01, 0.5, 1.25), (0.3, 0.5, 1.5), (0.9, 0.5, 1.1), (0.5, 3.0, 1.5),
        (1e-8, 0.2, 1.1), (1e-8, 0.7, 6.3), (1e-8, 1000.0, 10.5), (0.5, 1000.0, 7.7), (0.999, 0.2, 1.1),
    ],
)  # fmt: skip
def test_fractional_orders_equal_direct_integration(rate: float, noise: float, order: float) -> None:
    """dp-accounting drops the signs of its series there: an upper bound, up to 16 % too large. Ours is the integral."""
    mpmath.mp.dps = 40
    q, s, a = mpmath.mpf(rate), mpmath.mpf(noise), mpmath.mpf(order)
    turn = min(max(s * s * mpmath.log(1 / q - 1) + 0.5, -10 * s), a + 14 * s)
    places = sorted({-15 * s, -5 * s, mpmath.mpf(0), 5 * s, turn, mpmath.mpf(1), a, a + 5 * s, a + 15 * s})
    total = mpmath.quad(
        lambda z: mpmath.npdf(z, 0, s) * (1 - q + q * mpmath.exp((2 * z - 1) / (2 * s * s))) ** a, places
    )
    exact = float(mpmath.log(total) / (a - 1))
    assert curve(Subsampled(rate, Gaussian(noise)), np.array([order]))[0] == pytest.approx(exact, rel=1e-9)


def test_fractional_orders_never_exceed_the_library() -> None:
    orders = np.array(library.DEFAULT_RDP_ORDERS[:90], dtype=float)
    ours = curve(Subsampled(0.034, Gaussian(2.15)), orders)
    assert (ours <= library._compute_rdp_poisson_subsampled_gaussian(0.034, 2.15, orders) * (1 + 1e-9)).all()


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


@given(rate=rates, noise=noises, factor=st.floats(1.01, 5.0))
def test_curves_are_finite_and_monotone(rate: float, noise: float, factor: float) -> None:
    """In the order, the rate and the noise, over the whole range, up to order 512, without a single warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        base = curve(Subsampled(rate, Gaussian(noise)))
        noisier = curve(Subsampled(rate, Gaussian(noise * factor)))
        likelier = curve(Subsampled(min(1.0, rate * factor), Gaussian(noise)))
    assert np.isfinite(base).all()
    assert (base > 0).all()
    assert (np.diff(base) >= -1e-9 * base[1:]).all()
    assert (noisier <= base * (1 + 1e-9)).all()
    assert (likelier >= base * (1 - 1e-9)).all()


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
