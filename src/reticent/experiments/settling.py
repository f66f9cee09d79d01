"""A recipe with every number in it: what nobody said follows from public numbers, as in `rt.fit`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import torch

from reticent import catalogue, data, defences
from reticent.experiments.parts import model_of
from reticent.experiments.people import people_of, set_aside
from reticent.experiments.recipe import Recipe
from reticent.experiments.request import Request, request
from reticent.methods.claiming import rounds_as_claimed
from reticent.methods.solving import settings_of
from reticent.settling import RULED, settle


def settled(recipe: Recipe, dataset: data.Dataset, size: int | None = None) -> Recipe:
    """The (filled) recipe with the rule's numbers, for so many private examples, or those of the dataset.

    Of the dataset only its size and its shapes are looked at.

    >>> settled(Recipe(data="digits", epsilon=3.0).filled(), data.load("digits")).batch_size
    179.0
    """
    if recipe.method in defences.names():
        return recipe  # they have settings of their own
    if size is None:
        size = len(people_of(recipe, set_aside(dataset.train, recipe.holdout)[0]))
    asked = request(recipe, size)
    with torch.random.fork_rng(devices=[]):  # this network is only counted: the run's own must not start elsewhere
        model = model_of(recipe, dataset)
    task = "regression" if dataset.numeric else "classes"
    choose = partial(settle, size=asked.size, budget=asked.budget, optimizer=recipe.optimizer, task=task)
    found = choose(_said(recipe), model, asked.method)
    if recipe.claimed_epsilon is not None:
        batch = float(found.settings.batch_size)
        recipe = replace(recipe, batch_size=batch, epochs=_epochs_as_claimed(asked, batch, recipe.claimed_epsilon))
        found = choose(_said(recipe), model, asked.method)
    clip = asked.method.max_grad_norm if "max_grad_norm" in catalogue.options(recipe.method) else None
    numbers: dict[str, Any] = {name: float(getattr(found.settings, name)) for name in found.by_rule}
    if "lr" in numbers and recipe.lr_share is not None:
        numbers["lr"] = float(f"{recipe.lr_share * numbers['lr']:.3g}")
    return replace(recipe, max_grad_norm=clip, **numbers)


def ruled(said: Recipe, found: Recipe) -> tuple[str, ...]:
    """Which settings of a settled recipe nobody had said.

    >>> ruled(Recipe(), Recipe(lr=0.5))
    ('lr',)
    """
    names = (*RULED, "max_grad_norm")
    return tuple(name for name in names if getattr(said, name) is None and getattr(found, name) is not None)


def _said(recipe: Recipe) -> dict[str, float | None]:
    return {name: getattr(recipe, name) for name in RULED}


def _epochs_as_claimed(asked: Request, batch_size: float, epsilon: float) -> float:
    """How many epochs there are until the paper claims this epsilon."""
    batch = min(batch_size, asked.size)
    settings = settings_of(asked.method, asked.size, batch)
    rounds = rounds_as_claimed(asked.method, settings, epsilon, asked.delta, asked.already)
    return (rounds - 0.5) * batch / asked.size  # halfway to the round before: no rounding adds another
