"""A run that is repeated on its own examples with its own coins is the same run, bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from reticent import data
from reticent.data import Examples
from reticent.defences import defend
from reticent.errors import SettingError
from reticent.experiments.parts import model_of
from reticent.experiments.people import set_aside
from reticent.experiments.plain import train_plain
from reticent.experiments.recipe import Recipe
from reticent.experiments.repeat import put_back, repeatable
from reticent.experiments.training import train
from reticent.results import Kind, Result, read_result

RECIPES: dict[str, dict[str, Any]] = {
    "plain": {},
    "dpsgd": {"epsilon": 3.0},
    "centred": {"epsilon": 3.0, "centre": 8.0},
    "hold-out": {"method": "sa_dpsgd", "epsilon": 3.0, "holdout": 100},
    "advreg": {"method": "advreg", "options": {"reference_share": 0.4}},
    "selena": {"method": "selena", "options": {"K": 3, "L": 1}},
}


def trained(kind: str, folder: Path) -> Result:
    recipe = Recipe(data="digits", epochs=1.0, seed=3, **RECIPES[kind])
    return train_plain(recipe, folder) if kind == "plain" else train(recipe, folder)


@pytest.mark.parametrize("kind", RECIPES)
def test_the_same_examples_and_coins_give_the_same_model(kind: str, tmp_path: Path) -> None:
    trained(kind, tmp_path)
    again = repeatable(read_result(tmp_path))
    once_more = again.train(again.dataset.train, seed=3).model.state_dict()
    for name, weights in load_file(tmp_path / "model.safetensors").items():
        assert torch.equal(weights, once_more[name]), name


def result(recipe: Recipe, kind: Kind = "private") -> Result:
    return Result(run="run", label="run", recipe=recipe.to_json(), kind=kind)


def rows(x: torch.Tensor) -> list[list[float]]:
    return sorted(x.flatten(1).tolist())


@pytest.mark.parametrize(("kind", "aside"), [("plain", None), ("hold-out", 100), ("advreg", 575), ("selena", None)])
def test_what_is_set_aside_and_what_is_learned_from_are_all_there_is(kind: str, aside: int | None) -> None:
    found = repeatable(
        result(Recipe(data="digits", seed=3, **RECIPES[kind]), "plain" if kind == "plain" else "private")
    )
    assert (None if found.aside is None else len(found.aside)) == aside
    parts = [found.dataset.train.x] + ([] if found.aside is None else [found.aside.x])
    assert rows(torch.cat(parts)) == rows(data.load("digits").train.x)


def test_advreg_learned_from_the_rows_it_says() -> None:
    recipe = Recipe(data="digits", method="advreg", epochs=1.0, seed=3)
    dataset = data.load("digits")
    found: Any = defend("advreg", lambda: model_of(recipe.filled(), dataset), dataset.train, epochs=1, seed=3)
    again = repeatable(result(recipe))
    assert torch.equal(again.dataset.train.x, dataset.train.x[found.members])
    assert again.aside is not None
    assert torch.equal(again.aside.x, dataset.train.x[found.reference])


def test_advreg_without_a_seed_cannot_be_attacked_rightly_and_says_so() -> None:
    with pytest.raises(SettingError, match="train it with a seed"):
        repeatable(result(Recipe(data="digits", method="advreg")))


@pytest.mark.parametrize("size", [1, 40, 1337])
def test_other_examples_meet_the_same_public_hold_out(size: int) -> None:
    rows = torch.arange(size + 100)
    private, public = Examples(rows[100:], rows[100:]), Examples(rows[:100], rows[:100])
    learned, judges = set_aside(put_back(private, public), 100)
    assert torch.equal(learned.x, private.x)
    assert judges is not None
    assert torch.equal(judges.x, public.x)
