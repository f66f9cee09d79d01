"""Tuning by recipe: the choices are tried on the network and the data that it names."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from reticent.errors import SettingError
from reticent.experiments.normalising import charges
from reticent.experiments.parts import model_of
from reticent.experiments.people import set_aside
from reticent.experiments.presets import SHARES
from reticent.experiments.recipe import Recipe, check
from reticent.experiments.request import method_of
from reticent.experiments.settling import settled
from reticent.experiments.training import examples, finish
from reticent.files import replace_file
from reticent.results import Result
from reticent.tuning import Tuned, tune, tune_on_public
from reticent.tuning.choices import Choice

TUNING = "tuning.json"
"""What the search cost, beside the result of the run."""

UNUSED = ("lr_schedule", "lr_share", "curve", "private_diagnostics")
"""Settings of a run that no trial has."""


@dataclass(frozen=True, kw_only=True)
class Searched:
    """How to tune: who judges, how many trials are expected, and what they choose from.

    `aside` training examples are set aside. If they are public, they judge (`on="judges"`) or are what is searched on
    (`on="public"`); if they are private, they judge with noise.
    """

    aside: int
    public: bool = False
    on: str = "judges"
    choices: Sequence[Choice] | None = None
    trials: float = 8.0
    score_noise: float = 10.0


def tune_recipe(
    recipe: Recipe,
    search: Searched,
    out: Path | None = None,
    *,
    resume: bool = False,
    jobs: int | None = None,
    cluster: str | None = None,
) -> tuple[Result, Tuned]:
    """Tune a recipe, and tell what came of it as `train` does.

    >>> search = Searched(aside=200, choices=[{"lr": 0.3}], trials=1.5)
    >>> tune_recipe(Recipe(data="digits", epsilon=3.0, epochs=1, batch_size=300, seed=0), search)[0].guarantee.status
    'proved'
    """
    said: dict[str, Any] = {name: getattr(recipe, name) or None for name in SHARES.values()}  # no release by preset
    start, recipe = time.perf_counter(), replace(recipe.filled(), **said)
    check(recipe)
    budget = _budget(recipe)
    dataset = examples(recipe)
    private, aside = set_aside(dataset.train, search.aside)
    assert aside is not None
    shapes = replace(dataset, train=dataset.train.take([]), test=None)  # all that a network must know, and is sent
    make = partial(model_of, recipe, shapes)
    shared: dict[str, Any] = {
        "choices": search.choices,
        "epsilon": budget,
        "delta": recipe.delta,
        "method": method_of(recipe),
        "batch_size": recipe.batch_size,
        "epochs": recipe.epochs,
        "adjacency": recipe.adjacency,
        "seed": recipe.seed,
        "most_rows": recipe.most_rows,
        "max_physical_batch_size": recipe.max_physical_batch_size,
        "folder": out,
        "resume": resume,
        "jobs": jobs,
        "cluster": cluster,
    }
    if search.on == "public":
        tuned = tune_on_public(make, private, public=(aside.x, aside.y), public_is_public=search.public, **shared)
    else:
        more: dict[str, Any] = {"trials": search.trials, "score_noise": search.score_noise}
        tuned = tune(make, private, judges=(aside.x, aside.y), judges_are_public=search.public, **shared, **more)
    numbers: dict[str, Any] = dict(tuned.settings)
    learned = replace(dataset, train=private)
    found = settled(replace(recipe, **numbers), learned)
    call = tuned.trained.call
    noise = tuned.cost.get("noise_multiplier", 0.0 if call is None else call.plan.settings.noise_multiplier)
    result = finish(found, learned, tuned.trained, out, start, noise_multiplier=noise)
    if out is not None:
        replace_file(out / TUNING, json.dumps(tuned.about(), indent=2).encode())
    return result, tuned


def answer(result: Result, tuned: Tuned) -> dict[str, object]:
    """What `reticent tune` answers: a result, and what the search cost."""
    return result.answer() | {"tuned": tuned.about()}


def _budget(recipe: Recipe) -> float:
    if recipe.epsilon is None:
        raise SettingError("tuning needs a budget for the whole search: give --epsilon")
    if charges(recipe) or recipe.holdout is not None or recipe.size is not None:
        raise SettingError(
            "tuning takes no centre, whiten, statistics_noise, holdout or declared size yet: leave them out"
        )
    unused = [name for name in UNUSED if getattr(recipe, name)]
    unused += ["judge_on_test"] if recipe.options.get("judge_on_test") else []
    if unused:
        raise SettingError(f"tuning does not know {', '.join(unused)} yet, and would go on without: leave it out")
    if recipe.optimizer is not None:
        raise SettingError(
            f"tuning takes the method's own optimizer: name the method, not optimizer={recipe.optimizer}"
        )
    return recipe.epsilon
