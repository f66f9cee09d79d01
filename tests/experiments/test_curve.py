"""Curves and subsets: test accuracy against what is spent, without any effect; and runs on some of the examples."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from reticent.errors import SettingError
from reticent.experiments.measures import measure
from reticent.experiments.recipe import Recipe, check
from reticent.experiments.training import examples, train
from reticent.results import Result, read_result
from reticent.run import Run, Step

DPSGD = Recipe(
    data="digits", method="dpsgd", epsilon=3.0, delta=1e-5, epochs=1, batch_size=100, lr=1.0, seed=0, curve=4
)


class CrashError(Exception):
    pass


def crash(run: Run, step: Step) -> None:
    if step.number == 9:
        run.save()
        raise CrashError


def test_the_curve_ends_where_the_run_does(tmp_path: Path) -> None:
    result = train(DPSGD, tmp_path / "a")
    curve = result.learning
    assert curve is not None
    assert [number for number, _ in curve.points] == [4, 8, 12, 15]
    assert curve.points[-1] == (result.rounds, result.accuracy)
    assert curve.epsilon[-1] == (result.rounds, pytest.approx(result.epsilon, abs=1e-6))
    assert [number for number, _ in curve.epsilon] == [4, 8, 12, 15]
    spent = [epsilon for _, epsilon in curve.epsilon]
    assert spent == sorted(spent)
    assert curve.claimed == (), "DP-SGD has no rule of its own"
    assert "test examples; nothing is chosen by them" in curve.on
    assert read_result(tmp_path / "a").learning == curve
    assert Result.from_json(result.to_json()).learning == curve


def test_looking_changes_nothing(tmp_path: Path) -> None:
    seen, unseen = (
        train(recipe, tmp_path / name)
        for name, recipe in (("a", DPSGD), ("b", Recipe(**DPSGD.to_json() | {"curve": None})))
    )
    assert unseen.learning is None
    assert (seen.accuracy, seen.guarantee) == (unseen.accuracy, unseen.guarantee)
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in "ab"]
    assert weights[0][-1000:] == weights[1][-1000:]


def test_a_crash_costs_no_point_of_the_curve(tmp_path: Path) -> None:
    whole = train(DPSGD, tmp_path / "whole")
    with pytest.raises(CrashError):
        train(DPSGD, tmp_path / "a", progress=crash)
    assert train(DPSGD, tmp_path / "a", resume=True).learning == whole.learning
    assert train(DPSGD, tmp_path / "a", resume=True).learning == whole.learning, "a finished run too"


def test_what_an_accuracy_cost_is_read_from_the_curve() -> None:
    recipe = Recipe(**DPSGD.to_json() | {"method": "dpsur", "options": {"validation_batch_size": 100}, "epochs": 2.0})
    result = train(recipe)
    assert result.learning is not None
    lowest = 100 * min(value for _, value in result.learning.points)
    first = measure(f"epsilon_at_accuracy_{lowest - 0.5:.1f}", result)
    assert first == result.learning.epsilon[0][1]
    assert measure(f"epsilon_at_accuracy_{lowest - 0.5:.1f}", result, "claimed") == result.learning.claimed[0][1]
    assert measure("epsilon_at_accuracy_100", result) is None


def test_where_nothing_is_proved_the_curve_says_no_epsilon() -> None:
    settings = {"method": "pd_sgd", "epsilon": None, "options": {"noise_std": 0.1, "gamma": 100.0}}
    result = train(Recipe(**DPSGD.to_json() | settings))
    assert result.learning is not None
    assert len(result.learning.points) == 4
    assert result.learning.epsilon == ()


def test_a_subset_is_the_same_every_time(tmp_path: Path) -> None:
    recipe = Recipe(**DPSGD.to_json() | {"subset": 500, "curve": None})
    first, again = (examples(recipe).train for _ in range(2))
    assert len(first) == 500
    assert torch.equal(first.x, again.x)
    whole = examples(DPSGD)
    assert {tuple(row) for row in first.x.flatten(1).tolist()} < {tuple(r) for r in whole.train.x.flatten(1).tolist()}
    result = train(recipe, tmp_path / "a")
    assert (result.examples, result.rounds) == (500, 5)
    assert torch.equal(examples(recipe).test.x, whole.test.x), "all test examples judge"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"subset": 0}, "above 0"),
        ({"curve": 0}, "above 0"),
        ({"subset": 100, "size": 1000}, "subset"),
        ({"method": "selena", "curve": 3, "epsilon": None}, "leave out curve"),
    ],
)
def test_what_cannot_be_is_refused_before_any_time_is_spent(wrong: dict[str, object], says: str) -> None:
    with pytest.raises(SettingError, match=says):
        check(Recipe(**{"data": "digits", "method": "dpsgd", "epsilon": 3.0} | wrong).filled())  # type: ignore[arg-type]


def test_more_than_there_are_cannot_be_taken() -> None:
    with pytest.raises(SettingError, match="there are 1437 training examples"):
        examples(Recipe(data="digits", subset=5000))
    assert len(examples(Recipe(data="digits", subset=1437)).train) == 1437
