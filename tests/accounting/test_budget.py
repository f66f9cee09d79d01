"""Budgets and allowances: what may be released, and what may be said about it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from reticent.accounting import (
    Budget,
    Gaussian,
    Guarantee,
    Planned,
    RenyiFilter,
    Subsampled,
    Unlimited,
    curve,
    price,
)
from reticent.errors import BudgetSpent, SettingError, UnknownName

STEP = Subsampled(0.1, Gaussian(2.0))


@pytest.mark.parametrize(
    ("epsilon", "delta", "says"),
    [
        (0.0, 1e-5, "above 0"),
        (-1.0, 1e-5, "above 0"),
        (math.nan, 1e-5, "above 0"),
        (1.0, 0.0, "delta"),
        (1.0, 1.0, "delta"),
    ],
)
def test_a_budget_checks_its_numbers(epsilon: float, delta: float, says: str) -> None:
    with pytest.raises(SettingError, match=says):
        Budget(epsilon, delta)


def test_a_budget_names_its_accountant() -> None:
    with pytest.raises(UnknownName, match="best, pld, rdp"):
        Budget(1.0, 1e-5, accountant="moments")


def test_a_plan_covers_what_it_holds_and_costs_all_of_it() -> None:
    plan = Planned({STEP: 2, Gaussian(8.0): 1})
    whole = price({STEP: 2, Gaussian(8.0): 1}, 1e-5)
    for event in (STEP, Gaussian(8.0), STEP):
        assert plan.covers(event)
        plan.spend(event)
        assert plan.price(1e-5) == whole  # the price of the plan, however much of it is used
    assert not plan.covers(STEP)
    with pytest.raises(BudgetSpent, match="nothing was released"):
        plan.spend(STEP)
    assert not plan.covers(Gaussian(7.9999))


def test_a_filter_stops_before_its_budget_and_says_its_budget() -> None:
    allowance = RenyiFilter(order=10, epsilon=2.0, delta=1e-5)
    spent = 0
    while allowance.covers(STEP):
        allowance.spend(STEP)
        spent += 1
    one = float(curve(STEP, np.array([10.0]))[0])
    assert spent == math.floor(allowance.limit / one)
    assert allowance.price(1e-5).epsilon == 2.0
    assert allowance.price(1e-5).order == 10
    assert RenyiFilter(10, 2.0, 1e-5).price(1e-5).epsilon == 2.0  # also if nothing was spent
    assert allowance.price(1e-6).epsilon > 2.0
    with pytest.raises(BudgetSpent):
        allowance.spend(STEP)
    with pytest.raises(SettingError, match="not valid"):
        allowance.price(1e-5, "pld")


def test_a_filter_needs_an_order_that_leaves_something() -> None:
    with pytest.raises(SettingError, match="higher order"):
        RenyiFilter(order=2, epsilon=1.0, delta=1e-5)


def test_one_order_is_as_good_as_a_plan_at_that_order_and_no_better() -> None:
    """Whatever the filter lets out, at its order, is within its budget by plain composition."""
    allowance = RenyiFilter(order=18, epsilon=1.0, delta=1e-5)
    events = []
    for noise in (2.0, 3.0, 4.0, 5.0) * 700:
        event = Subsampled(0.02, Gaussian(noise))
        if allowance.covers(event):
            allowance.spend(event)
            events.append(event)
    assert 0.99 < price(events, 1e-5, accountant="rdp").epsilon <= 1.0


def test_without_a_guarantee_everything_goes_and_nothing_is_promised() -> None:
    allowance = Unlimited("the test has no noise")
    assert allowance.covers(Gaussian(0.0))
    allowance.spend(Gaussian(0.0))
    assert Guarantee.of(allowance.price(1e-5)).status == "none"


def test_adding_a_step_is_a_dictionary_look_up() -> None:
    """No curve, no distribution: what is asked before every release never prices anything."""
    plan = Planned({STEP: 10**6})
    calls = curve.__globals__["_curve"].cache_info()
    for _ in range(1000):
        plan.spend(STEP)
    assert curve.__globals__["_curve"].cache_info() == calls
