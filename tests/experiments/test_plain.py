"""The line without privacy: it learns, repeats itself, and goes on after a crash."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from reticent.experiments import plain
from reticent.experiments.plain import train_plain
from reticent.experiments.recipe import Recipe
from reticent.results import PlainSettings

RECIPE = Recipe(data="digits", epochs=4.0, seed=3)


def test_it_learns_and_promises_nothing(tmp_path: Path) -> None:
    answer = train_plain(RECIPE, tmp_path)
    assert answer.accuracy > 0.9
    assert answer.guarantee.status == "none"
    assert answer.epsilon is None
    assert answer.optimizer.lr in plain.RATES
    assert (tmp_path / "model.safetensors").exists()


def test_after_a_crash_it_ends_with_the_same_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train_plain(RECIPE, tmp_path / "whole")
    monkeypatch.setattr(plain.Folder, "due", lambda self: True)

    def crash(done: int, total: int) -> None:
        if done * 2 == total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_plain(RECIPE, tmp_path / "broken", tell=crash)
    told: list[int] = []
    train_plain(RECIPE, tmp_path / "broken", tell=lambda done, total: told.append(done))
    assert len(told) == 2, "the first half is not done again"
    whole, broken = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "broken"))
    assert all(torch.equal(whole[name], broken[name]) for name in whole)


@pytest.mark.parametrize(("optimizer", "lr"), [("sign_sgd", 0.002), ("sign_adam", 0.002), ("sgd", 0.1), ("adam", 0.01)])
def test_what_the_recipe_says_of_the_optimizer_is_taken(optimizer: str, lr: float, tmp_path: Path) -> None:
    recipe = replace(RECIPE, optimizer=optimizer, lr=lr, batch_size=32.0, lr_schedule="constant")
    answer = train_plain(recipe, tmp_path)
    assert answer.accuracy > 0.85
    told = PlainSettings(name=optimizer, lr=lr, batch_size=32, schedule="constant")
    assert answer.optimizer == told


def test_presets_and_rates_for_noisy_gradients_are_not_taken(tmp_path: Path) -> None:
    answer = train_plain(replace(RECIPE, lr=1e6, batch_size=1000.0), tmp_path)
    assert answer.optimizer == PlainSettings(
        name="adam", lr=answer.optimizer.lr, batch_size=64, schedule="cosine to zero"
    )
    assert answer.optimizer.lr in plain.RATES
