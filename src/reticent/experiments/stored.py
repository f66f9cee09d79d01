"""Stored recipes: the settings of a result as a recipe again."""

from __future__ import annotations

from dataclasses import fields, replace

from reticent.experiments.recipe import Recipe, read_recipe
from reticent.results import Result


def recipe_of(result: Result) -> Recipe:
    """The recipe that a result was made by; a setting that only a newer version knows is refused by its name.

    >>> recipe_of(Result(run="a", label="dpsgd", recipe={"data": "digits", "lr": 2.0})).lr
    2.0
    """
    result.settings.only(part.name for part in fields(Recipe))
    options = result.settings.part("options")
    settings = {name: value for name, value in result.recipe.items() if name != "options"}
    return replace(read_recipe(None, settings), options={} if options is None else dict(options.data))
