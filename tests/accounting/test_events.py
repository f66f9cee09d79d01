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
)
from reticent.accounting.events import from_json, to_json
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
