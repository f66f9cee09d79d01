"""Times: told where they are public, and not where they would tell of the examples."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reticent.accounting import Guarantee
from reticent.experiments.recipe import Recipe
from reticent.experiments.training import train
from reticent.results import Result, read_result
from reticent.results.parts import Effort

TOLD = Result(
    run="a",
    label="dpsur",
    recipe={"data": "digits", "method": "dpsur"},
    guarantee=Guarantee("proved", 3.0, 1e-5, accountant="rdp"),
    seconds=12.5,
    effort=Effort(wall_seconds=13.25, cpu_seconds=11.75),
)


@pytest.mark.parametrize("route", ["per_accepted", "filter"])
def test_times_that_must_stay_private_are_not_written(route: str) -> None:
    hidden = replace(TOLD, guarantee=replace(TOLD.guarantee, route=route))
    for said in (str(hidden.to_json()), str(hidden.answer()), str(hidden.stored())):
        assert not any(number in said for number in ("12.5", "13.25", "11.75"))
    assert hidden.wall_seconds is None
    assert "12.5" in str(TOLD.answer())
    assert replace(hidden, guarantee=replace(hidden.guarantee, seeded=True), seconds=12.5).seconds == 12.5


def test_the_time_of_a_failed_run_is_not_told() -> None:
    assert replace(TOLD, status="failed", seconds=1.0).seconds is None


def test_a_run_with_hidden_attempts_leaves_no_time(tmp_path: Path) -> None:
    options = {"hidden_attempts": True, "cap": 200, "validation_batch_size": 10}
    train(Recipe(data="digits", method="dpsur", noise_multiplier=2.0, epochs=0.2, options=options), tmp_path)
    found = read_result(tmp_path)
    assert found.seconds is None
    assert any("must stay private" in one for one in found.guarantee.excludes)
