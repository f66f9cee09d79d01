"""What presets release first: charged, named, told before it happens, and refused where it would be of no use."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from reticent.accounting.losses.tradeoff import MOST_MU, mu
from reticent.cli import app
from reticent.data import load
from reticent.errors import ModelError, ReticentError, SettingError
from reticent.experiments import best as best_of
from reticent.experiments import presets
from reticent.experiments.quoting import Scale as Size
from reticent.experiments.quoting import network_of, of_dataset, quote
from reticent.experiments.recipe import Recipe, read_recipe
from reticent.experiments.settling import settled
from reticent.experiments.training import train
from reticent.experiments.tuning import Searched, tune_recipe
from reticent.experiments.what_if import what_if


@pytest.fixture
def sharing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Digits, with a preset that whitens by a fifth of the budget."""
    table = {**presets.presets()}
    table["data"] = {**table["data"], "digits": {**table["data"].get("digits", {}), "whiten_share": 0.2}}
    monkeypatch.setattr(presets, "presets", lambda: table)


def test_a_method_that_cannot_train_the_model_refuses_before_anything_is_released(tmp_path: Path) -> None:
    recipe = Recipe(data="digits", method="least_squares", model="mlp", whiten=5.0, noise_multiplier=2.0, seed=0)
    with pytest.raises(ModelError, match="one linear layer"):
        train(recipe, tmp_path / "run")
    assert not list(tmp_path.glob("run/statistics*"))
    with pytest.raises(ModelError, match="one linear layer"):
        of_dataset(Recipe(data="digits", method="least_squares", model="mlp", epsilon=3.0))


@pytest.mark.parametrize("epsilon", [-1.0, 0.0, math.nan, math.inf])
def test_an_epsilon_that_is_none_is_refused_in_words(sharing: None, epsilon: float) -> None:
    with pytest.raises(ReticentError, match="epsilon"):
        train(Recipe(data="digits", epsilon=epsilon, epochs=1, seed=0))


def test_a_budget_so_small_that_the_release_would_drown_has_none(sharing: None) -> None:
    assert Recipe(data="digits", epsilon=1e-3).filled().whiten is None
    assert Recipe(data="digits", epsilon=3.0).filled().whiten is not None


def test_a_method_may_release_another_share_and_no_share_goes_with_named_features() -> None:
    usual, means = (Recipe(data="location30", method=one, epsilon=3.0).filled() for one in ("dpsgd", "class_means"))
    assert (usual.whiten, usual.max_grad_norm) == (5.6, None)
    assert (means.whiten, means.max_grad_norm) == (8.7, 8.0)
    for model in (None, "mlp"):
        preset = presets.preset_of("location30", "class_means", "hashed-words", model, None, None)
        assert "whiten_share" not in preset


def with_best(monkeypatch: pytest.MonkeyPatch, **best: Any) -> None:
    """Digits, with a best recipe."""
    table = {**presets.presets()}
    table["data"] = {**table["data"], "digits": {"best": best}}
    monkeypatch.setattr(best_of, "presets", lambda: table)


def test_who_says_nothing_of_how_to_train_gets_the_best_recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    with_best(monkeypatch, method="class_means")

    def method(command: str, *more: str) -> str:
        asked = CliRunner().invoke(app, [command, "--data", "digits", "--epsilon", "3", "--json", *more])
        assert asked.exit_code == 0, asked.output
        answer = json.loads(asked.stdout)
        return str(answer["method"] if command == "plan" else answer["recipe"]["method"])

    for command in ("plan", "train"):
        assert method(command) == "class_means"
        assert method(command, "--delta", "1e-6", "--set", "validation=300") == "class_means"
        assert method(command, "--set", "whiten=20", "--set", "head=0.3") == "class_means"
        assert method(command, "--set", "method=least_squares") == "least_squares"
        assert method(command, "--method", "dpsgd", "--set", "method=class_means") == "dpsgd"
        assert method(command, "--epochs", "2") == "dpsgd"
        assert method(command, "--set", "max_grad_norm=0.5", "--set", "epochs=2") == "dpsgd"
        assert method(command, "--method", "least_squares") == "least_squares"
    assert method("plan", "--rounds", "30") == "dpsgd"
    listed = CliRunner().invoke(app, ["settings", "--data", "digits", "--epsilon", "3", "--json"])
    assert json.loads(listed.stdout)["method"]["value"] == "class_means"


def test_huge_budgets_have_a_mu() -> None:
    assert mu(1e6, 1e-5) == MOST_MU
    assert mu(50.0, 1e-5) < MOST_MU


def test_what_if_tells_of_the_run_that_a_plan_makes(sharing: None) -> None:
    said, size, (parameters, layers) = network_of(Recipe(data="digits", delta=1e-5))
    (row,) = what_if(said, size=size, parameters=parameters, layers=layers, epsilons=(3.0,), by_preset=True)
    planned, size = of_dataset(Recipe(data="digits", delta=1e-5, epsilon=3.0))
    assert row.noise_multiplier == pytest.approx(quote(planned, Size(data_size=size)).plan.settings.noise_multiplier)
    (bare,) = what_if(said, size=size, parameters=parameters, layers=layers, epsilons=(3.0,))
    assert row.noise_multiplier > bare.noise_multiplier * 1.001


def test_a_search_can_be_told_to_release_nothing(sharing: None) -> None:
    recipe = Recipe(data="digits", epsilon=3.0, epochs=1, batch_size=300, whiten=0.0, seed=0)
    result, _ = tune_recipe(recipe, Searched(aside=200, choices=[{"lr": 0.3}], trials=1.5))
    assert result.guarantee.status == "proved"


def test_the_guarantee_names_what_was_released_first(sharing: None) -> None:
    covers = train(Recipe(data="digits", epsilon=3.0, epochs=1, seed=0)).guarantee.covers
    assert any("before training: Gaussian" in line for line in covers)
    none = train(Recipe(data="digits", epsilon=3.0, epochs=1, whiten=0.0, seed=0)).guarantee.covers
    assert not any("before training" in line for line in none)


def test_a_plan_that_nothing_can_pay_says_what_to_change() -> None:
    recipe = Recipe(method="dpsur", epsilon=0.5, batch_size=200, options={"validation_noise": 0.3})
    with pytest.raises(SettingError, match="validation_noise"):
        quote(recipe, Size(data_size=1000, rounds=2000))


def test_the_best_recipe_may_take_other_steps_and_more_of_a_larger_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    larger = [{"from_epsilon": 2.0, "batch_size": 300.0, "lr_share": 0.25}, {"from_epsilon": 4.0, "whiten_share": 0.2}]
    with_best(monkeypatch, lr_share=0.5, larger=larger)
    digits = load("digits")

    def found(epsilon: float, **said: object) -> Recipe:
        recipe = read_recipe(None, {"data": "digits", "epsilon": epsilon, **said}, suited=True)
        return settled(recipe.filled(), digits)

    usual = settled(Recipe(data="digits", epsilon=1.0).filled(), digits)
    assert usual.lr is not None
    assert found(1.0).lr == pytest.approx(0.5 * usual.lr, rel=0.01)
    assert (found(1.0).average_last, found(1.0).batch_size) == (usual.average_last, usual.batch_size)
    assert (found(2.0).batch_size, found(2.0).whiten, found(2.0).lr_share) == (300.0, None, 0.25)
    assert (found(4.0).batch_size, found(4.0).whiten) == (300.0, presets.noise_of(0.2, 4.0, None))
    assert found(4.0, lr=0.3).lr == 0.3
    for said in (
        {"model": "linear"},
        {"lr": 0.3},
        {"whiten": 7.0},
        {"momentum": 0.5},
        {"data_folder": None, "epochs": 3},
    ):
        assert found(4.0, **said).batch_size != 300.0, said
    assert found(4.0, subset=600).batch_size != 300.0  # a batch is for as many examples as there are
    assert found(4.0, subset=600).lr_share == 0.5
    assert settled(found(1.0), digits).lr == found(1.0).lr
    assert Recipe(data="digits", epsilon=4.0).filled().lr_share is None  # others are compared with, not helped


def test_tuning_finds_the_step_itself() -> None:
    with pytest.raises(SettingError, match="lr_share"):
        tune_recipe(Recipe(data="digits", epsilon=3.0, lr_share=0.5), Searched(aside=200, choices=[{"lr": 0.3}]))


def test_what_was_tuned_on_public_examples_tells_its_noise() -> None:
    recipe = Recipe(data="digits", epsilon=3.0, epochs=1, batch_size=100, seed=0)
    search = Searched(aside=200, choices=[{"lr": 0.3}], on="public", public=True)
    result, tuned = tune_recipe(recipe, search)
    assert tuned.trained.call is not None
    assert result.noise_multiplier == tuned.trained.call.plan.settings.noise_multiplier > 0.5
