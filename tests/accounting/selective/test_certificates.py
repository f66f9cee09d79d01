"""Theorem C on pairs small enough to try every test: the certificate lies above all of them, and they come close."""

from __future__ import annotations

import math

import pytest

from reticent.accounting.selective.certificates import certificate, release_excess


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("order", [1.3, 3.0])
def test_the_certificate_on_cells_is_above_all_tests(in_cells, attempt, sign: int, order: float) -> None:
    """Here the worst test may need a coin for outcomes that are alike; without cells there are none."""
    cells = in_cells(attempt, order, sign, (0.0, 1.2))
    bound, worst = math.exp(release_excess(cells.problem)), cells.hidden_mixed(cells.every_test())
    assert max(worst, cells.hidden(cells.random_tests(20_000)).max()) <= bound * (1 + 1e-12)
    assert worst >= 0.99 * bound


@pytest.mark.parametrize("log_x", [-0.3, -0.02, 0.0, 0.05, 0.3])
def test_every_x_proves_its_certificate(in_cells, attempt, log_x: float) -> None:
    cells = in_cells(attempt, 2.0, 1, (-1.2, 0.0, 0.7, 1.9))
    assert cells.hidden(cells.every_test()).max() <= certificate(cells.problem, log_x) * math.exp(
        cells.problem.log_unit
    )
