"""What a recipe asks of the planner: the one place where `train`, `account`, `plan` and all that repeats them meet."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from reticent import methods
from reticent.accounting import Adjacency, Budget, Event
from reticent.accounting.adjacency import Unit, adjacency_of
from reticent.accounting.pricing import Accountant
from reticent.data import Examples
from reticent.experiments.normalising import charges
from reticent.experiments.recipe import Recipe
from reticent.methods.planning import default_delta


@dataclass(frozen=True, kw_only=True)
class Request:
    """All that `methods.plan` is given, and a run with it; what is None follows from the budget."""

    method: methods.Method
    size: int
    batch_size: float | None
    rounds: int | None = None
    epochs: float | None = None
    budget: Budget | None = None
    delta: float
    accountant: Accountant = "best"
    already: tuple[Event, ...] = ()
    adjacency: Adjacency
    unit: Unit = "example"

    def plan(self) -> methods.Plan:
        """The plan of a run that is asked for so."""
        return methods.plan(
            self.method,
            size=self.size,
            batch_size=self.batch_size,
            rounds=self.rounds,
            epochs=self.epochs,
            budget=self.budget,
            delta=self.delta,
            accountant=self.accountant,
            already=self.already,
            adjacency=self.adjacency,
            unit=self.unit,
        )


def request(recipe: Recipe, size: int, public: Examples | None = None, *, accountant: Accountant = "best") -> Request:
    """What a (filled) recipe asks for with so many private examples, unless it declares their number.

    >>> request(Recipe(method="dpsgd", epsilon=3.0, batch_size=10.0, epochs=2.0), 100).plan().rounds
    20
    """
    size = size if recipe.size is None else recipe.size
    delta = recipe.delta if recipe.delta is not None else default_delta(size)
    return Request(
        method=method_of(recipe, public),
        size=size,
        batch_size=None if recipe.batch_size is None else min(recipe.batch_size, size),
        epochs=recipe.epochs,
        budget=Budget(recipe.epsilon, delta, accountant) if recipe.epsilon is not None else None,
        delta=delta,
        accountant=accountant,
        already=charges(recipe),
        adjacency=adjacency_of(recipe.size, recipe.adjacency),
        unit="example" if recipe.groups is None else "person",
    )


def method_of(recipe: Recipe, public: Examples | None = None) -> methods.Method:
    """The method of a recipe; a public hold-out that nobody has loaded is stood in for, since asking it costs nothing.

    >>> method_of(Recipe(method="auto_s", options={"stability": 0.1})).bound
    Normalise(stability=0.1)
    """
    options = {"max_grad_norm": recipe.max_grad_norm, "noise_multiplier": recipe.noise_multiplier} | recipe.options
    if recipe.holdout is not None or recipe.options.get("judge_on_test"):
        stand_in = torch.zeros(1, 1), torch.zeros(1, dtype=torch.long)
        options |= {"holdout": stand_in if public is None else public, "holdout_is_public": True}
    return methods.get(recipe.method, **{name: value for name, value in options.items() if value is not None})
