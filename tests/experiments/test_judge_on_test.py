"""SA-DPSGD as its paper runs it: the test examples choose the updates, and nothing hides that."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reticent import data
from reticent.errors import SettingError
from reticent.experiments.attacking import attack_run
from reticent.experiments.recipe import Recipe, check
from reticent.experiments.training import CHOSEN_BY, prepare, train
from reticent.outside import Annealed, PublicHoldout

RECIPE = Recipe(
    data="digits", method="sa_dpsgd", epsilon=3.0, delta=1e-5, epochs=1.0, seed=0, options={"judge_on_test": True}
)


def test_the_test_examples_judge_and_all_learn() -> None:
    dataset = data.load("digits")
    run = prepare(RECIPE.filled(), dataset)
    gate = run.plan.method.gate
    assert isinstance(gate, Annealed)
    assert isinstance(gate.judge, PublicHoldout)
    assert dataset.test is not None
    assert gate.judge.x is dataset.test.x
    assert run.plan.settings.size == len(dataset.train), "no training example is set aside"


def test_result_and_guarantee_say_what_the_accuracy_is_worth(tmp_path: Path) -> None:
    result = train(RECIPE, tmp_path / "run")
    assert "no estimate" in (result.accuracy_on or "")
    assert any("no estimate" in said for said in result.guarantee.assumptions)
    assert result.guarantee.status == "proved", "the training examples are as safe as ever"
    with pytest.raises(SettingError, match="judged"):
        attack_run(tmp_path / "run", models=4)


def test_a_curve_does_not_say_that_nothing_was_chosen_by_it() -> None:
    learning = train(replace(RECIPE, curve=2)).learning
    assert learning is not None
    assert learning.on == CHOSEN_BY


@pytest.mark.parametrize("also", [{"holdout": 50}, {"validation": 50}])
def test_two_sets_of_judges_are_refused(also: dict[str, int]) -> None:
    with pytest.raises(SettingError, match="leave out holdout and validation"):
        check(replace(RECIPE, **also).filled())


def test_without_test_examples_nobody_stands_in_for_them() -> None:
    with pytest.raises(SettingError, match="no test examples"):
        prepare(RECIPE.filled(), replace(data.load("digits"), test=None))
