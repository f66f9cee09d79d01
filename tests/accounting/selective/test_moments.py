"""The nodes of the Gaussian pair: plain divergences come out right, and more nodes change nothing that matters."""

from __future__ import annotations

import math

import numpy as np
import pytest

from reticent.accounting import AnnealedRelease, SelectiveAttempt
from reticent.accounting.renyi.sampled_gaussian import subsampled_gaussian
from reticent.accounting.selective import moments as nodes
from reticent.accounting.selective.moments import moments
from reticent.accounting.selective.renyi import MARGIN, attempt_curve, release_curve
from reticent.accounting.selective.sa_dpsgd import annealed_curve

ORDERS = np.array([1.1, 2.0, 8.0, 64.0, 512.0])


@pytest.mark.parametrize(("rate", "noise"), [(1e-6, 0.2), (0.01, 0.05), (0.03, 2.0), (0.5, 1000.0), (1.0, 0.1)])
def test_the_remainders_sum_up_to_the_plain_divergence(rate: float, noise: float) -> None:
    found = [moments(rate, noise, order, 1) for order in ORDERS]
    excess = [math.log(part.remainder.sum()) + part.scale for part in found]
    plain = subsampled_gaussian(rate, noise, ORDERS)
    np.testing.assert_allclose(np.logaddexp(0, excess) / (ORDERS - 1), plain, rtol=1e-8)


@pytest.mark.parametrize(("rate", "noise"), [(1e-4, 0.5), (0.03, 2.0), (0.5, 1.0), (0.9, 20.0)])
def test_removing_a_record_is_the_dearer_direction(rate: float, noise: float) -> None:
    """What `subsampled_gaussian` relies on, where the laws are mirror images."""
    for order in ORDERS:
        removed, added = (moments(rate, noise, order, sign) for sign in (1, -1))
        sums = [math.log(part.remainder.sum()) + part.scale for part in (removed, added)]
        assert sums[0] >= sums[1]


@pytest.mark.parametrize(("rate", "noise"), [(0.034, 2.15), (0.2, 0.5)])
def test_twice_the_nodes_change_less_than_the_margin(rate: float, noise: float, monkeypatch) -> None:
    attempt, release = SelectiveAttempt(rate, noise, 0.01, 0.1, 0.5), AnnealedRelease(rate, noise, 5)
    curves = (lambda: attempt_curve(attempt, ORDERS), lambda: release_curve(attempt, ORDERS))
    few, annealed = [curve() for curve in curves], annealed_curve(release, ORDERS)
    monkeypatch.setattr(nodes, "NODES", 8001)
    for before, curve in zip(few, curves, strict=True):
        np.testing.assert_allclose(curve(), before, rtol=(MARGIN - 1) / 10)
    np.testing.assert_allclose(annealed_curve(release, ORDERS), annealed, rtol=1e-4)
