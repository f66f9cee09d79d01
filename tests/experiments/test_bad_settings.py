"""What people get wrong is told in one sentence before any time is spent, and nothing private shows by it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reticent import data
from reticent.audits import audit
from reticent.errors import DataError, ResumeError, ReticentError, SettingError
from reticent.experiments.compare import read_comparison
from reticent.experiments.recipe import Recipe, check, read_recipe
from reticent.experiments.tables import find_table
from reticent.experiments.training import train
from reticent.inside import Clip, GradientSum
from reticent.methods import dpis, dpsgd
from reticent.report.commands import trained_by


def test_false_is_false_however_it_is_written() -> None:
    for word in ("false", "False"):
        assert read_recipe(None, {"method": "dpsur", "hidden_attempts": word}).options == {"hidden_attempts": False}
    for options in ({"hidden_attempts": "no"}, {"validation_batch_size": "abc"}, {"test": 3}):
        with pytest.raises(SettingError, match="must be"):
            check(Recipe(method="dpsur", options=options))


@pytest.mark.parametrize(
    "setting",
    [{"lr": -1.0}, {"lr": float("nan")}, {"epochs": 0.0}, {"epochs": float("inf")}, {"batch_size": 0.0}, {"seed": -1},
     {"epsilon": 0.0}, {"epsilon": float("inf")}, {"max_physical_batch_size": 0}, {"seed": 2**70}],
)  # fmt: skip
def test_numbers_that_mean_nothing_are_refused(setting: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match=next(iter(setting))):
        check(Recipe(**setting))


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"epsilons": [1.0, float("inf")]}, "finite"),
        ({"epsilons": [-1.0]}, "above 0"),
        ({"epsilons": 3}, "epsilons must be a list"),
        ({"epsilons": ["a"]}, "epsilons must be a list"),
        ({"seeds": "x"}, "how many"),
        ({"methods": "dpsur"}, "methods must be a list"),
        ({"variant": "x"}, "must be a table"),
        ({"gradient_costs": 3}, "must be a table"),
        ({"methods": ["dpsur"], "gradient_costs": {"dpsur": 0.0}}, "above 0"),
        ({"epsilon": 9}, "epsilons, not epsilon"),
        ({"variant": {"a/b": {"method": "dpsgd"}}}, "cannot name a variant"),
        ({"variant": {"dpsgd": {"method": "dpadam"}}}, "another label"),
        ({"variant": {"late": {"method": "dpsur", "delta": 1e-3}}}, "same budgets"),
    ],
)
def test_comparisons_that_mean_nothing_are_refused(changes: dict[str, Any], match: str) -> None:
    with pytest.raises(SettingError, match=match):
        read_comparison(None, changes)


def test_the_baseline_has_settings_too() -> None:
    found = read_comparison(None, {"data": "digits", "methods": ["auto_s"], "dpsgd.lr": "2"})
    assert next(job for job in found.jobs() if job.label == "dpsgd").recipe.lr == 2.0


def test_no_cell_is_no_table() -> None:
    with pytest.raises(SettingError, match="no cell"):
        find_table("dpsur", "2").chosen(",,")


def described(folder: Path, x: np.ndarray, y: np.ndarray, **parts: Any) -> str:
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", y)
    lines = {"classes": 2, "train": ["x.npy", "y.npy"]} | parts
    (folder / "own.toml").write_text("\n".join(f"{name} = {json.dumps(value)}" for name, value in lines.items()))
    return str(folder / "own.toml")


@pytest.mark.parametrize("wrong", [2, -1, 0.5])
def test_labels_out_of_range_are_refused_before_anything_is_drawn(tmp_path: Path, wrong: float) -> None:
    y = np.array([0, 1] * 10 + [wrong])
    with pytest.raises(DataError, match="whole numbers from 0 to 1"):
        data.load(described(tmp_path, np.zeros((21, 3), np.float32), y))


def test_own_arrays_may_have_numpys_own_precision(tmp_path: Path) -> None:
    own = described(tmp_path, np.random.RandomState(0).rand(40, 3), np.arange(40) % 2)
    assert train(Recipe(data=own, noise_multiplier=1.0, epochs=1, model="linear", seed=0)).accuracy is None


def test_own_files_that_are_missing_or_do_not_agree_are_named(tmp_path: Path) -> None:
    x, y = np.zeros((20, 3), np.float32), np.arange(20) % 2
    np.save(tmp_path / "wide.npy", np.zeros((20, 4), np.float32))
    for parts, match in (({"test": ["wide.npy", "y.npy"]}, "must agree"), ({"train": ["x.npy"]}, "two files")):
        with pytest.raises(DataError, match=match):
            data.load(described(tmp_path, x, y, **parts))
    with pytest.raises(DataError, match="no table"):
        data.table(tmp_path / "missing.csv", data.Schema({}, "y", ("a", "b"), {}))


def test_an_example_that_is_not_a_number_does_not_stop_the_run_that_draws_it_alone(tmp_path: Path) -> None:
    """A crash would tell that it is there."""
    x = np.random.RandomState(0).rand(6, 4).astype(np.float32)
    x[3] = np.nan  # in each of 240 rounds it is drawn alone with chance 1 / 6 * (5 / 6)^5, sixteen times on average
    own = described(tmp_path, x, np.arange(6) % 2)
    for model in ("linear", "mlp"):
        answer = train(Recipe(data=own, epsilon=3.0, epochs=40, batch_size=1.0, model=model, seed=0))
        assert answer.guarantee.status == "proved"


def test_another_step_length_is_another_run(tmp_path: Path) -> None:
    recipe = Recipe(data="digits", noise_multiplier=1.0, epochs=1, lr=1.0, seed=0)
    train(recipe, tmp_path)
    (tmp_path / "result.json").unlink()
    with pytest.raises(ResumeError, match="lr"):
        train(Recipe(data="digits", noise_multiplier=1.0, epochs=1, lr=7.0, seed=0), tmp_path, resume=True)


def test_the_command_on_the_page_repeats_the_run() -> None:
    recipe = Recipe(data="digits", epochs=1, momentum=0.0, max_grad_norm=0.3, noise_multiplier=1.0, seed=0).filled()
    words = trained_by(recipe.to_json()).split()[2:]
    given: dict[str, Any] = {}
    for flag, value in zip(words[::2], words[1::2], strict=True):
        name, said = value.split("=") if flag == "--set" else (flag[2:].replace("-", "_"), value)
        given[name] = said
    assert read_recipe(None, given).filled() == recipe


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ReticentError, match="cannot write"):
        train(Recipe(data="digits", noise_multiplier=1.0, epochs=1), tmp_path / "file" / "run")


@pytest.mark.parametrize("settings", [{"alpha": 2.0}, {"alpha": 0.0}, {"seed": -3}])
def test_an_audit_with_impossible_settings_says_nothing(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingError):
        audit(dpsgd(noise_multiplier=1.0), runs=10, **settings)


@pytest.mark.parametrize("settings", [{"noise_multiplier": -1.0}, {"noise_multiplier": 1.0, "max_grad_norm": 0.0}])
def test_an_audit_of_what_no_run_could_have_is_not_consistent(settings: dict[str, float]) -> None:
    with pytest.raises(SettingError, match="must be"):
        audit(dpsgd(**settings), runs=10)


def test_an_audit_that_could_look_at_nothing_is_not_consistent() -> None:
    with pytest.raises(SettingError, match="nothing could be looked at"):
        audit(replace(dpis(), query=GradientSum, bound=Clip()), runs=10)
