"""zCDP and back."""

from __future__ import annotations

import math

import pytest

from reticent.accounting import (
    Gaussian,
    Laplace,
    NoisyMax,
    Subsampled,
)
from reticent.accounting.renyi.concentrated import epsilon_of, rho, rho_for

STEP = Subsampled(0.1, Gaussian(2.0))


def test_zcdp(golden) -> None:
    table = golden("plain")["concentrated"]
    for epsilon, old, new in zip(table["epsilon"], table["old"], table["new"], strict=True):
        assert rho_for(epsilon, 1e-5, "old") == pytest.approx(old, abs=1e-8)
        assert rho_for(epsilon, 1e-5) == pytest.approx(new, abs=1e-6)
        assert epsilon_of(rho_for(epsilon, 1e-5), 1e-5) == pytest.approx(epsilon, rel=1e-6)
    for tiny in (1e-6, 1e-5, 1e-4):
        assert 0.999 * tiny < epsilon_of(rho_for(tiny, 1e-5), 1e-5) <= tiny
    assert rho(Gaussian(2.0)) == 0.125
    assert rho(NoisyMax(0.2)) == pytest.approx(0.02)
    assert rho(Laplace(0.5)) == pytest.approx(2.0)
    assert math.isinf(rho(STEP))
