"""Guarantees: in one line, in JSON, never rounded down."""

from __future__ import annotations

import json
import math

import pytest

from reticent.accounting import (
    Gaussian,
    Guarantee,
    Subsampled,
    price,
)
from reticent.accounting.guarantee import round_up

STEP = Subsampled(0.1, Gaussian(2.0))


@pytest.mark.parametrize("guarantee", [
    Guarantee.of(price({STEP: 10}, 1e-5), route="every step", covers=("all",), seeded=True),
    Guarantee("none", math.inf, 1e-5, why="an empirical defence"),
    Guarantee("as_claimed", 3.0, 1e-5, as_claimed={"epsilon": 3.0, "limit": math.inf}),
])  # fmt: skip
def test_a_guarantee_survives_strict_json(guarantee: Guarantee) -> None:
    text = json.dumps(guarantee.to_json(), allow_nan=False)
    back = Guarantee.from_json(json.loads(text))
    assert str(back) == str(guarantee)
    assert (back.status, back.epsilon, back.covers) == (guarantee.status, guarantee.epsilon, guarantee.covers)


def test_a_guarantee_reads_in_one_line() -> None:
    proved = Guarantee("proved", 2.9912, 1e-5, "add-or-remove", accountant="pld", seeded=True)
    assert str(proved) == (
        "(3.00, 1e-05)-DP, add or remove one example, proved (PLD); seeded: for reproduction, not for release"
    )
    assert "the number of examples being public" in str(Guarantee("proved", 2.9912, 1e-5))
    assert "replace one example" in str(Guarantee("proved", 2.9912, 1e-5, "replace"))
    assert str(Guarantee("none", math.inf, 1e-5, why="no noise")) == "no differential privacy: no noise"
    assert "as claimed" in str(Guarantee("as_claimed", 3.0, 1e-5))


@pytest.mark.parametrize("epsilon", [1e-7, 0.00123, 0.0999, 0.5, 1.0, 1.001, 2.999999, 12.345, 1000.0])
def test_print_rounds_up(epsilon: float) -> None:
    shown = float(round_up(epsilon))
    assert epsilon <= shown * (1 + 1e-12)
    assert shown <= epsilon * 1.1 + 0.01
