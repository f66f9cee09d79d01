"""Settling: what was said of a run, completed by the method's own habits and by the rule of defaults.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import nn

from reticent.accounting import Budget
from reticent.defaults import Chosen, Public, choose
from reticent.inside import Everyone, refuse_lazy
from reticent.methods import Method, abouts
from reticent.outside import Sign

RULED = ("batch_size", "epochs", "lr", "momentum", "average_last")
"""What the rule has an answer for."""


@dataclass(frozen=True)
class Settled:
    """The settings of a run, and which of them nobody had said."""

    settings: Chosen
    by_rule: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        """Both as plain data."""
        return {"settings": self.settings.to_json(), "by_rule": list(self.by_rule)}


def settle(
    said: Mapping[str, float | None],
    model: nn.Module,
    method: Method,
    *,
    size: int,
    budget: Budget | None,
    optimizer: str | None = None,
    task: str | None = None,
) -> Settled:
    """Complete what was said: by what suits the method everywhere, then by the rule.

    >>> from reticent.methods import dpsgd
    >>> found = settle({"lr": 0.5}, nn.Linear(20, 2), dpsgd(), size=1000, budget=Budget(3.0, 1e-5))
    >>> found.settings.lr, found.settings.average_last, found.by_rule
    (0.5, 0.0, ('batch_size', 'epochs', 'momentum', 'average_last'))
    """
    about = abouts().get(method.name)
    habits = {} if about is None else {name: about.preset.get(name) for name in RULED}
    if isinstance(method.sampler, Everyone):
        habits["batch_size"] = float(size)
    given: dict[str, float] = {}
    for name in RULED:
        value = said.get(name) if said.get(name) is not None else habits.get(name)
        if value is not None:
            given[name] = float(value)
    public = public_of(model, method, size=size, budget=budget, optimizer=optimizer, task=task)
    return Settled(choose(public, **given), tuple(name for name in RULED if said.get(name) is None))


def public_of(
    model: nn.Module,
    method: Method,
    *,
    size: int,
    budget: Budget | None,
    optimizer: str | None = None,
    task: str | None = None,
) -> Public:
    """The public numbers of a run: none of them depends on what the examples say.

    >>> from reticent.methods import dpsgd
    >>> public_of(nn.Linear(20, 2), dpsgd(), size=1000, budget=None).parameters
    42
    """
    refuse_lazy(model)
    method.refuse_unfit(model, task)
    trained = [part for part in model.parameters() if part.requires_grad]
    return Public(
        size=size,
        parameters=max(1, sum(part.numel() for part in trained)),
        layers=max(1, sum(part.dim() > 1 for part in trained)),
        epsilon=None if budget is None else budget.epsilon,
        **({} if budget is None else {"delta": budget.delta}),
        noise_multiplier=method.noise_multiplier,
        max_grad_norm=method.max_grad_norm,
        optimizer=optimizer or method.optimizer,
        task=task,
        signs=isinstance(method.direction, Sign),
    )
