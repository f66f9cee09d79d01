"""The subsampled Gaussian against dp-accounting and direct integration."""

from __future__ import annotations

import math
import warnings

import mpmath
import numpy as np
import pytest
from dp_accounting.rdp import rdp_privacy_accountant as library
from hypothesis import given
from hypothesis import strategies as st

from reticent.accounting import (
    ORDERS,
    Gaussian,
    Subsampled,
    curve,
)

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
        (0.1, 100.0, 300.5), (0.1, 100.0, 511.5), (0.1, 100.0, 1000.5), (0.01, 20.0, 1000.5),
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
