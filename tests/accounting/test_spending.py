"""What runs spend on the same examples adds up, and is never said to be less than it is."""

from __future__ import annotations

import json
import math

import pytest

from reticent.accounting import Gaussian, Spending, Subsampled, Unbounded, price
from reticent.accounting.renyi.conversions import overhead
from reticent.accounting.spending import UNKNOWN_SPENDING, Filtered, spending_of
from reticent.errors import DataError, SettingError

STEP = Subsampled(0.1, Gaussian(2.0))
KEPT = Filtered(8.0, 0.5, "add-or-remove")


def test_events_are_priced_together() -> None:
    both = Spending({STEP: 10}) + Spending({STEP: 5, Gaussian(9.0): 1})
    assert both.price(1e-5) == price({STEP: 15, Gaussian(9.0): 1}, 1e-5)
    assert both.price(1e-5, "replace").epsilon > both.price(1e-5).epsilon
    assert sorted(map(repr, both.each())) == sorted(map(repr, [STEP] * 15 + [Gaussian(9.0)]))
    assert not Spending()
    assert both


def test_filters_are_priced_at_the_lowest_of_their_orders() -> None:
    low = Filtered(4.0, 0.25, "add-or-remove")
    both = Spending({STEP: 10}, (KEPT,)) + Spending(filters=(low,))
    expected = Spending({STEP: 10}).divergence(4.0) + 0.75 + float(overhead(4.0, 1e-5))
    found = both.price(1e-5)
    assert (found.epsilon, found.order) == (pytest.approx(expected), 4.0)


def test_a_filter_says_nothing_above_its_order_or_of_other_neighbours() -> None:
    kept = Spending(filters=(KEPT,))
    assert kept.divergence(8.0) == kept.divergence(2.0) == 0.5
    assert math.isinf(kept.divergence(8.5))
    assert math.isinf(kept.divergence(8.0, "replace"))
    assert math.isinf(Spending(filters=(Filtered(8.0, 0.5, "zero-out"),)).divergence(8.0, "add-or-remove"))
    with pytest.raises(SettingError):
        Filtered(1.0, 0.5, "zero-out")
    with pytest.raises(SettingError):
        Filtered(8.0, math.nan, "zero-out")


def test_counted_examples_are_not_added_or_removed() -> None:
    counted = spending_of([STEP], declared=False)
    assert math.isinf(counted.price(1e-5, "add-or-remove").epsilon)
    assert "counted" in counted.price(1e-5, "add-or-remove").why
    assert counted.price(1e-5).epsilon == price([STEP], 1e-5).epsilon
    assert not (counted + spending_of([STEP])).declared


def test_it_is_read_back_as_it_was_written() -> None:
    kept = Spending({STEP: 3, Unbounded("no"): 1, Gaussian(math.inf): 2}, (KEPT,), declared=False)
    text = json.dumps(kept.to_json())
    assert Spending.from_json(json.loads(text)) == kept
    assert json.dumps(Spending.from_json(json.loads(text)).to_json()) == text
    newer = text.replace("Gaussian", "Quantum")
    assert math.isinf(Spending.from_json(json.loads(newer)).divergence(2.0))
    assert math.isinf(UNKNOWN_SPENDING.price(1e-5).epsilon)


@pytest.mark.parametrize("wrong", [None, {}, [], {"declared": True, "events": 3, "filters": []}, "more", "less"])
def test_what_is_no_spending_is_refused(wrong: object) -> None:
    data = spending_of([STEP]).to_json()
    if wrong == "more":
        data["also"] = 1
        wrong = data
    elif wrong == "less":
        data["events"][0]["times"] = -1  # type: ignore[index, call-overload]
        wrong = data
    with pytest.raises(DataError, match="no spending of ours"):
        Spending.from_json(wrong)
