"""Loss distributions of events against dp-accounting: the library on its grid, ours on one that suits the losses."""

from __future__ import annotations

import pytest
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant

from reticent.accounting import (
    Gaussian,
    Laplace,
    Subsampled,
    epsilon,
)

GRID = [(rate, noise) for rate in (1e-3, 0.01, 0.034, 0.1, 0.5) for noise in (0.7, 1.0, 1.4, 2.15, 5.0)]


@pytest.mark.parametrize(("rate", "noise"), GRID[::2])
def test_loss_distributions_agree_with_the_library(rate: float, noise: float) -> None:
    """The library's grid is fixed, ours suits the losses; both err upwards, so the library may lie above ours."""
    accountant = PLDAccountant(value_discretization_interval=5e-4)
    accountant.compose(dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(noise)), 400)
    ours = epsilon({Subsampled(rate, Gaussian(noise)): 400}, 1e-5, accountant="pld")
    oracle = accountant.get_epsilon(1e-5)
    assert ours <= oracle * (1 + 1e-3)
    if oracle > 0.1:
        assert ours == pytest.approx(oracle, rel=1e-2)


def test_loss_distributions_of_mixed_events_agree_with_the_library() -> None:
    accountant = PLDAccountant()
    accountant.compose(dp_event.PoissonSampledDpEvent(0.1, dp_event.GaussianDpEvent(2.0)), 50)
    accountant.compose(dp_event.GaussianDpEvent(8.0), 2)
    accountant.compose(dp_event.LaplaceDpEvent(5.0), 3)
    events = {Subsampled(0.1, Gaussian(2.0)): 50, Gaussian(8.0): 2, Laplace(5.0): 3}
    assert epsilon(events, 1e-5, accountant="pld") == pytest.approx(accountant.get_epsilon(1e-5), rel=2e-3)
