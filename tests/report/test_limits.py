"""What a guarantee permits, against the attacks' own formulas."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reticent.attacks import permitted_accuracy
from reticent.attacks.permitted import permitted_tpr
from reticent.report.limits import caught_at_most, permitted_curve, right_at_most

epsilons, deltas = st.floats(0.0, 20.0), st.floats(0.0, 0.01)
QUIETLY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@QUIETLY
@given(st.floats(0.0, 1.0), epsilons, deltas)
def test_members_found_at_a_rate_of_false_alarms(rate: float, epsilon: float, delta: float) -> None:
    wanted = float(permitted_tpr(np.array([rate]), epsilon, delta)[0])
    assert caught_at_most(rate, epsilon, delta) == pytest.approx(wanted, abs=1e-12)


@QUIETLY
@given(epsilons, deltas)
def test_right_guesses(epsilon: float, delta: float) -> None:
    assert right_at_most(epsilon, delta) == pytest.approx(permitted_accuracy(epsilon, delta), abs=1e-12)


def test_without_a_guarantee_everything_is_permitted() -> None:
    assert caught_at_most(0.0, None, 1e-5) == right_at_most(None, 1e-5) == 1.0
    assert set(permitted_curve(None, 1e-5).tpr) == {1.0}


def test_a_perfect_attack_lies_beyond_the_curve() -> None:
    """The curve must be able to raise the alarm: it stays below 1 where the guarantee says something."""
    curve = permitted_curve(1.0, 1e-5)
    assert max(tpr for fpr, tpr in zip(curve.fpr, curve.tpr, strict=True) if fpr < 0.1) < 0.5
