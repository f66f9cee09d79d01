"""Commands: how a run is made again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from reticent.results import Result
from reticent.results.fields import Fields

FLAGS = ("method", "data", "model", "activation", "features", "epsilon", "delta", "epochs", "batch_size", "lr", "seed")


def repeated(run: Result) -> str:
    """How to train a run again: a command, or for a run that was made in Python what it was called with."""
    if run.beyond is None:
        return trained_by(run.recipe)
    settings = {name: value for name, value in flat(run.recipe).items() if name not in ("data", "model")}
    said = ", ".join(f"{name}={value!r}" for name, value in settings.items() if value is not None)
    objects = "".join(f", {name}=..." for name in run.beyond if name not in ("data", "model", "method", "options"))
    return f"rt.fit(model, examples, {said}{objects})"


def flat(recipe: Mapping[str, object]) -> dict[str, object]:
    """Every setting of a recipe, the options of its method among them."""
    options = Fields(recipe, "the recipe").part("options")
    both = {**recipe, **({} if options is None else options.data)}
    return {name: value for name, value in both.items() if name != "options"}


def trained_by(recipe: Mapping[str, object]) -> str:
    """The command that trains by a recipe again, with every setting it has.

    >>> trained_by({"method": "dpsur", "data": "digits", "momentum": 0.0, "options": {"hidden_attempts": False}})
    'reticent train --method dpsur --data digits --set momentum=0 --set hidden_attempts=false'
    """
    given = {name: _plain(value) for name, value in flat(recipe).items() if value is not None}
    given.pop("private_diagnostics", None)
    words = [f"--{name.replace('_', '-')} {given.pop(name)}" for name in FLAGS if name in given]
    return " ".join(["reticent train", *words, *(f"--set {name}={value}" for name, value in given.items())])


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    return shlex.quote(str(value))
