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
from reticent.accounting.losses.pld import COARSE, FINE, MANY, Grid
from reticent.accounting.pricing import loss_epsilon

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


@pytest.mark.parametrize(("rate", "noise", "steps"), [(0.01, 1.0, 1000), (0.5, 2.0, 10), (0.001, 1.0, 100_000)])
def test_a_finer_grid_gains_what_is_said_and_never_loses(rate: float, noise: float, steps: int) -> None:
    events = {Subsampled(rate, Gaussian(noise)): steps}
    finest = loss_epsilon(events, 1e-5, Grid(128, 2**19))
    for grid, share in ((FINE, 1e-4), (MANY, 6e-4), (COARSE, 3e-3)):
        assert finest <= loss_epsilon(events, 1e-5, grid) <= finest * (1 + share)
