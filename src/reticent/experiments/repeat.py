"""Repeat: the pipeline of a finished run once more, on other examples and with other randomness."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

import torch
from torch import nn

from reticent import defences
from reticent.data import Dataset, Examples
from reticent.errors import DataError, SettingError
from reticent.experiments.parts import model_of
from reticent.experiments.people import people_of, set_aside
from reticent.experiments.plain import learn
from reticent.experiments.recipe import Recipe
from reticent.experiments.stored import recipe_of
from reticent.experiments.training import defended, examples, prepare
from reticent.results import Result
from reticent.trained import Trained


class NotRepeatable(SettingError):  # noqa: N818 - reads better where it is raised
    """A run that neither attacks nor canaries can be made for; everything else of an audit can."""


NO_CLASSES = (
    "attacks and canaries need a classifier: examples (x, y), and one answer for each class, or one logit for yes or "
    "no. An audit looks at ledger and step (canaries=0); scores of your own are measured by reticent.attacks."
)


class Again(Protocol):
    """Something that can train once more as a finished run was trained."""

    @property
    def dataset(self) -> Dataset:
        """`train` holds exactly the examples that the run learned from, `test` others like them."""

    @property
    def spare(self) -> Examples | None:
        """Training examples that the run has never looked at; None if there are none."""

    def train(self, train: Examples, *, seed: int) -> Trained:
        """The identical pipeline on other examples, with other coins."""

    def design(self) -> dict[str, object]:
        """What tells repetitions of this run from those of another with the same settings."""


@dataclass(frozen=True, eq=False)
class Repeatable:
    """What a finished run was made with by its recipe; `dataset.train` holds exactly what it learned from.

    `aside` is what it looked at without learning from it: a public hold-out, or AdvReg's reference examples. It is the
    same in every repetition, and whoever attacks the model may know it.
    """

    recipe: Recipe
    plain: bool
    dataset: Dataset
    aside: Examples | None
    spare: Examples | None = None

    def train(self, train: Examples, *, seed: int) -> Trained:
        """The identical pipeline on other examples, defences included."""
        mine, dataset = replace(self.recipe, seed=seed), replace(self.dataset, train=train)
        if self.plain:
            return learn(mine, dataset)[0]
        if mine.method in defences.names():
            given = {} if self.aside is None else {"reference": self.aside}
            return defended(replace(mine, options=mine.options | given), dataset)
        run = prepare(mine, replace(dataset, train=put_back(train, self.aside)))
        for _ in run:
            pass
        return Trained.of(run)

    def design(self) -> dict[str, object]:
        """What tells repetitions of this run from those of another with the same recipe."""
        aside = {} if self.aside is None else {"aside": len(self.aside)}
        return {**({"plain": True} if self.plain else {}), **aside}

    def network(self) -> nn.Module:
        """A network that the run's weights fit into."""
        return model_of(self.recipe, self.dataset)

    def __reduce__(self) -> tuple[Callable[[str, bool], Repeatable], tuple[str, bool]]:
        """Another process is sent the recipe, and loads the examples by itself, once."""
        return _loaded, (json.dumps(self.recipe.to_json()), self.plain)


def repeatable(result: Result) -> Repeatable:
    """The pipeline of a run, from what came of it; its data are loaded once.

    >>> recipe = Recipe(data="digits", method="sa_dpsgd", holdout=100, epsilon=3.0).filled()
    >>> found = repeatable(Result(run="a", label="a", recipe=recipe.to_json()))
    >>> len(found.dataset.train), len(found.aside)
    (1337, 100)
    """
    recipe = recipe_of(result)
    if recipe.options.get("judge_on_test"):
        raise SettingError(f"the test examples judged {result.run}: none is left that it has never looked at")
    found = _loaded(json.dumps(recipe.to_json()), result.kind == "plain")
    if found.dataset.numeric:
        raise NotRepeatable(NO_CLASSES)
    known = result.examples if result.kind == "private" and recipe.size is None else None
    there = len(people_of(recipe, found.dataset.train))
    if known not in (None, there) and recipe.method not in defences.names():
        raise DataError(
            f"{result.run} learned from {known} {result.guarantee.unit}s, and {recipe.data} holds {there}: these are "
            "other data. Name those that the run was trained on."
        )
    return found


@lru_cache(maxsize=1)
def _loaded(recipe: str, plain: bool) -> Repeatable:
    mine = Recipe(**json.loads(recipe))
    dataset = examples(mine)
    learned, aside = _learned_from(mine, dataset.train, plain)
    return Repeatable(mine, plain, replace(dataset, train=learned), aside, _spare(mine))


def _spare(recipe: Recipe) -> Examples | None:
    """What a subset left out of the training."""
    if recipe.subset is None:
        return None
    everyone = examples(replace(recipe, subset=None, validation=None)).train
    return set_aside(everyone, recipe.subset)[0] if recipe.subset < len(everyone) else None


def _learned_from(recipe: Recipe, train: Examples, plain: bool) -> tuple[Examples, Examples | None]:
    if plain:
        return train, None
    if recipe.method not in defences.names():
        return set_aside(train, recipe.holdout)
    used, compared = defences.rows_used(recipe.method, len(train), seed=recipe.seed, **recipe.options)
    return train.take(used), train.take(compared) if len(compared) else None


def put_back(private: Examples, public: Examples | None) -> Examples:
    """Training examples of which `set_aside` takes just this public hold-out again.

    >>> private, public = (Examples(x, x) for x in torch.arange(10).tensor_split([7]))
    >>> [part.y.tolist() for part in set_aside(put_back(private, public), 3)]
    [[0, 1, 2, 3, 4, 5, 6], [7, 8, 9]]
    """
    if public is None:
        return private
    both = Examples(torch.cat([public.x, private.x]), torch.cat([public.y, private.y]))
    rows = torch.arange(len(both))
    rest, first = set_aside(Examples(rows, rows), len(public))
    assert first is not None
    return both.take(torch.cat([first.x, rest.x]).argsort())
