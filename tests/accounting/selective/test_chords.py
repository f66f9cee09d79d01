"""Theorem S on pairs small enough to try every test: the bound lies above all of them, and is attained."""

from __future__ import annotations

import math

import numpy as np
import pytest

from reticent.accounting import SelectiveAttempt
from reticent.accounting.selective.chords import CLOSE, Chords, attempt_excess, rejection_range
from reticent.accounting.selective.problem import Problem


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("order", [1.3, 2.0, 6.0])
def test_the_bound_on_cells_is_the_worst_of_all_tests(in_cells, attempt, sign: int, order: float) -> None:
    """A test's cost is convex in its chances, so the worst takes corners: all of them are tried."""
    cells = in_cells(attempt, order, sign, (-1.2, 0.0, 0.7, 1.9))
    bound, worst = math.exp(attempt_excess(cells.problem)), cells.seen(cells.every_test()).max()
    assert worst * (1 - 1e-12) <= bound <= worst * (1 + 2 * CLOSE)


@pytest.mark.parametrize("sign", [1, -1])
def test_no_random_test_on_cells_costs_more(in_cells, attempt, sign: int) -> None:
    """Any chances inside the polygon."""
    cells = in_cells(attempt, 3.0, sign, (-1.5, -0.7, -0.2, 0.3, 0.8, 1.4, 2.2))
    bound, found = math.exp(attempt_excess(cells.problem)), cells.seen(cells.random_tests(20_000)).max()
    assert 0.3 * bound < found <= bound


@pytest.mark.parametrize(
    ("rare", "order"),
    [
        (SelectiveAttempt(0.13, 2.5, 0.5, 0.44, 0.99991), 1.01),
        (SelectiveAttempt(0.33, 0.5, 0.5, 0.088, 0.99986), 1.05),
        (SelectiveAttempt(0.3067, 8.27, 1.0, 0.38543, 0.69449), 423.0),
    ],
)
def test_the_bound_lies_above_every_x(rare: SelectiveAttempt, order: float) -> None:
    """Also where rejections are rare and x is far below 1, and where the unit is too large for a double."""
    for sign in (1, -1):
        problem = Problem.of(rare, order, sign)
        terms = Chords(problem)
        places = np.linspace(*rejection_range(rare), 401)
        met = max(terms.point(place).first - terms.second(place) for place in places)
        assert attempt_excess(problem) >= math.log(met) + problem.log_unit - 1e-12
