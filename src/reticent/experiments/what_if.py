"""What if: the run that each of several budgets would get, by the rule and by the run's own plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from reticent.defaults import Public, choose
from reticent.errors import SettingError
from reticent.experiments.recipe import Recipe
from reticent.experiments.request import request
from reticent.inside import Poisson
from reticent.methods.solving import rounds_in
from reticent.outside.solution import Solution
from reticent.settling import RULED

EPSILONS = (0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 8.0)


@dataclass(frozen=True, kw_only=True)
class WhatIf:
    """One budget: the run it gets, and how far its steps stand out of their noise."""

    epsilon: float
    delta: float
    noise_multiplier: float
    rounds: int
    batch_size: float
    lr: float
    step_signal: float
    """The length of a clipped mean gradient, at most, over that of the noise on it, in one round."""
    signal: float
    """The same of the whole run: below 10 little can be learned, above 1000 the noise hardly matters."""

    def to_json(self) -> dict[str, float]:
        """The row as plain data."""
        return asdict(self)


def what_if(
    recipe: Recipe,
    *,
    size: int,
    parameters: int,
    layers: int = 1,
    epsilons: Sequence[float] = EPSILONS,
    by_preset: bool = False,
) -> list[WhatIf]:
    """The run for each budget, with so many private examples and trained parameters; what the recipe says stays.

    A preset may release something first, with a noise that depends on the budget: then each has its own.

    >>> [row.rounds for row in what_if(Recipe(), size=1000, parameters=100, epsilons=(1.0, 3.0))]
    [300, 300]
    """
    asked = [replace(recipe, epsilon=epsilon) for epsilon in epsilons]
    return [_row(one.filled() if by_preset else one, size, parameters, layers) for one in asked]


def _row(recipe: Recipe, size: int, parameters: int, layers: int) -> WhatIf:
    asked = request(recipe, size)
    if isinstance(asked.method.direction, Solution):
        raise SettingError(
            f"what if is about how far steps stand out of their noise, and {recipe.method} takes none: name another "
            "method, or ask `reticent plan` for one epsilon"
        )
    public = Public(
        size=asked.size,
        parameters=parameters,
        layers=layers,
        epsilon=recipe.epsilon,
        delta=asked.delta,
        noise_multiplier=asked.method.noise_multiplier,
        max_grad_norm=asked.method.max_grad_norm,
        optimizer=recipe.optimizer or asked.method.optimizer,
    )
    said = {name: value for name in RULED if (value := getattr(recipe, name)) is not None}
    if not isinstance(asked.method.sampler, Poisson):
        said.setdefault("batch_size", float(asked.size))  # everybody takes part
    chosen = choose(public, **said)
    rounds = rounds_in(chosen.epochs, asked.size, chosen.batch_size)
    plan = replace(asked, batch_size=chosen.batch_size, epochs=None, rounds=rounds).plan()
    exact = replace(public, noise_multiplier=plan.settings.noise_multiplier)
    signal = exact.signal(chosen.batch_size, plan.rounds)
    return WhatIf(
        epsilon=plan.price.epsilon,
        delta=plan.price.delta,
        noise_multiplier=plan.settings.noise_multiplier,
        rounds=plan.rounds,
        batch_size=chosen.batch_size,
        lr=chosen.lr,
        step_signal=signal / plan.rounds**0.5,
        signal=signal,
    )
