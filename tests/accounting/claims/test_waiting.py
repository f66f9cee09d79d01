"""The clock of DPSUR (section 5.4): what a duration gives away, and what random pauses hide of it."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.accounting import SelectiveAttempt
from reticent.accounting.claims.waiting import duration_epsilon
from reticent.accounting.selective.corners import noisy_test

DELTA = 1e-5


def test_pauses_hide_some_of_it_but_never_all() -> None:
    """Fashion-MNIST at the paper's epsilon 3, of which none is meant for the clock."""
    attempt = noisy_test(2048 / 60000, 2.15, 256 / 60000, 0.8, -1.0)
    bare, short, long = (duration_epsilon(attempt, 1081, DELTA, pause=pause) for pause in (0.0, 1.0, 10.0))
    assert bare == pytest.approx(0.579, abs=0.002)
    assert bare > short > long > 0.05


def test_an_example_that_turns_no_test_is_not_seen() -> None:
    assert duration_epsilon(SelectiveAttempt(0.1, 2.0, 0.01, 0.5, 0.5), 100, DELTA) == 0.0


@pytest.mark.parametrize("pause", [0.0, 2.0])
def test_it_is_what_simulated_runs_show(pause: float) -> None:
    """At its epsilon, the best set of durations has about delta more chance with the example than e^eps without."""
    attempt, kept, delta, runs = SelectiveAttempt(0.5, 1.0, 0.2, 0.1, 0.6), 20, 0.05, 400_000
    found = duration_epsilon(attempt, kept, delta, pause=pause)
    rng = np.random.default_rng(0)
    laws = []
    for chance in (0.6, 0.5):
        waits = rng.negative_binomial(kept, chance, runs)
        waits += rng.negative_binomial(kept, 1 / (1 + pause), runs) if pause else 0
        laws.append(np.bincount(waits, minlength=1000)[:1000] / runs)
    directions = ((laws[0], laws[1]), (laws[1], laws[0]))
    seen = max(float(np.maximum(p - np.exp(found) * q, 0).sum()) for p, q in directions)
    assert seen == pytest.approx(delta, rel=0.15)
