"""Events: what cannot be is refused, and what can survives JSON."""

from __future__ import annotations

import math

import pytest

from reticent.accounting import (
    Composed,
    Event,
    Gaussian,
    Laplace,
    NoisyMax,
    SelectiveAttempt,
    SelectiveRelease,
    Subsampled,
    Unbounded,
    price,
)
from reticent.accounting.event_json import from_json, to_json
from reticent.errors import SettingError


@pytest.mark.parametrize(
    "event",
    [
        Gaussian(1.0),
        Subsampled(0.1, Composed((Gaussian(1.0), Laplace(2.0)))),
        SelectiveRelease(SelectiveAttempt(0.1, 1.0, 0.01, 0.1, 0.5, 0.05), 300),
        NoisyMax(0.1),
        Unbounded("why not"),
    ],
)
def test_events_survive_json(event: Event) -> None:
    assert from_json(to_json(event)) == event


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ({"event": "Shuffled", "rate": 0.1}, "unknown event 'Shuffled'"),
        ({"event": "Gaussian", "noise_multiplier": 2.0, "clipped_twice": True}, "unknown field 'clipped_twice'"),
        ({"event": "Composed", "parts": [{"event": "Gaussian", "noise_multiplier": 2.0}, {"event": "New"}]}, "'New'"),
        ({"event": "Subsampled", "rate": 0.1, "inner": {"event": "New"}}, "'New'"),
    ],
)
def test_what_a_newer_version_wrote_costs_infinity_and_says_why(written: dict, says: str) -> None:
    cost = price([from_json(written)], 1e-5)
    assert math.isinf(cost.epsilon)
    assert says in cost.why


def test_a_field_that_is_not_there_means_its_default() -> None:
    """So that one can be added: what was written without it means what it meant."""
    old = {"event": "SelectiveAttempt", "rate": 0.1, "noise_multiplier": 1.0, "validation_rate": 0.01}
    old |= {"accept_low": 0.1, "accept_high": 0.5}
    assert from_json(old) == SelectiveAttempt(0.1, 1.0, 0.01, 0.1, 0.5, smoothness=None)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Gaussian(-1.0),
        lambda: Gaussian(math.nan),
        lambda: Laplace(-0.1),
        lambda: NoisyMax(-0.1),
        lambda: Subsampled(1.2, Gaussian(1.0)),
        lambda: SelectiveAttempt(0.1, 1.0, 0.1, 0.6, 0.5),
        lambda: SelectiveAttempt(0.1, 1.0, 1.1, 0.2, 0.5),
        lambda: SelectiveRelease(SelectiveAttempt(0.1, 1.0, 0.1, 0.2, 0.5), 0),
    ],
)
def test_events_that_cannot_be_are_refused(make) -> None:
    """A negative noise would otherwise have the price of a positive one."""
    with pytest.raises(SettingError, match="cannot be"):
        make()
