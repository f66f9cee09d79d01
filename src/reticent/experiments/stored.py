"""Stored recipes: the settings of a result as a recipe again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import NoReturn

from reticent.errors import SettingError
from reticent.experiments.recipe import Recipe, read_recipe
from reticent.files import replace_file
from reticent.results import Result
from reticent.results.fields import Fields
from reticent.results.sealing import read_sealed, seal

RECIPE = "recipe.json"
"""The settings a run was begun with, as they were said: a run that goes on needs its folder only."""
PARTS = {"data": "--data NAME (or own.toml)", "model": "--model package.module:function"}


def with_parts(result: Result, *, data: str | None = None, model: str | None = None) -> Result:
    """A result whose recipe names these data and this network: for a run that was made in Python, and has no names.

    >>> own = Result(run="a", label="dpsgd", recipe={"data": "own", "method": "dpsgd"}, beyond=("data", "model"))
    >>> with_parts(own, data="digits", model="torch.nn:Identity").beyond is None
    True
    """
    named = {name: value for name, value in (("data", data), ("model", model)) if value is not None}
    if named and result.beyond is None:
        raise SettingError(f"{result.run} has a recipe that names its data and model: leave out --data and --model")
    left = tuple(name for name in result.beyond or () if name not in named)
    return replace(result, recipe=dict(result.recipe) | named, beyond=left or None)


def keep_recipe(recipe: Recipe, folder: Path) -> None:
    """Write down what a run was begun with."""
    replace_file(folder / RECIPE, seal(recipe.to_json(), indent=2))


def kept_recipe(folder: Path) -> Recipe:
    """What the run in a folder was begun with."""
    if not (folder / RECIPE).exists():
        raise SettingError(f"{folder} does not tell its settings: give those that the run was started with")
    return _recipe(Fields(read_sealed(folder / RECIPE), str(folder / RECIPE)))


def recipe_of(result: Result) -> Recipe:
    """The recipe that a result was made by; a setting that only a newer version knows is refused by its name.

    >>> recipe_of(Result(run="a", label="dpsgd", recipe={"data": "digits", "lr": 2.0})).lr
    2.0
    """
    if result.beyond is not None:
        refuse_nameless(result.run, result.beyond)
    return _recipe(result.settings)


def _recipe(told: Fields) -> Recipe:
    told.only(part.name for part in fields(Recipe))
    options = told.part("options")
    plain = {name: value for name, value in told.data.items() if name != "options"}
    return replace(read_recipe(None, plain), options={} if options is None else dict(options.data))


def refuse_nameless(run: str, beyond: Sequence[str], instead: str = "") -> NoReturn:
    """Say what is not on record of a run that was made in Python, and how to come by it."""
    here = "; or, in Python, call attack() or audit() on what rt.fit returned"
    others = [name for name in beyond if name not in PARTS]
    if others:
        raise SettingError(f"{run} was made in Python with its own {', '.join(others)}, which no recipe can say{here}")
    missing = " and ".join(PARTS[name] for name in beyond)
    raise SettingError(
        f"{run} was made in Python, and its {' and '.join(beyond)} are not on record: give {missing}"
        f"{f', or {instead}' if instead else ''}{here}"
    )
