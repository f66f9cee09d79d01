"""A second outside oracle, where it is installed: prv-accountant (Gopi, Lee & Wutschitz 2021)."""

from __future__ import annotations

import pytest

from reticent.accounting import Gaussian, Subsampled, epsilon

prv = pytest.importorskip("prv_accountant", reason="prv-accountant is not installed: pip install prv-accountant")


@pytest.mark.parametrize(("rate", "noise", "steps"), [(0.01, 1.0, 1000), (0.0341, 2.15, 1081), (0.1, 4.0, 300)])
def test_losses_lie_within_its_error_bounds(rate: float, noise: float, steps: int) -> None:
    mechanism = prv.PoissonSubsampledGaussianMechanism(noise_multiplier=noise, sampling_probability=rate)
    accountant = prv.PRVAccountant(prvs=[mechanism], max_self_compositions=[steps], eps_error=0.01, delta_error=1e-9)
    low, _, high = accountant.compute_epsilon(delta=1e-5, num_self_compositions=[steps])
    assert low <= epsilon({Subsampled(rate, Gaussian(noise)): steps}, 1e-5, accountant="pld") <= high
