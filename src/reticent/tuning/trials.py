"""One trial: a private run with some of the settings."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from reticent.accounting import Composed, Event, Repeated
from reticent.accounting.adjacency import Unit
from reticent.errors import SettingError
from reticent.losses import LossLike
from reticent.methods import Method
from reticent.methods.solving import settings_of, tally
from reticent.optimizers import make_optimizer
from reticent.run import Run


def new_model(make: Callable[[], nn.Module], seed: int | None = None) -> nn.Module:
    """A model that nobody has trained; the random numbers of the program go on as if none had been made.

    >>> new_model(lambda: nn.Linear(4, 2)).in_features
    4
    >>> new_model(nn.Linear)
    Traceback (most recent call last):
    reticent.errors.SettingError: tuning is given a function that makes a new model each time, such as ...
    """
    says = "tuning is given a function that makes a new model each time, such as lambda: nn.Linear(4, 2)"
    if isinstance(make, nn.Module) or not callable(make):
        raise SettingError(f"{says}, not a {type(make).__name__}")
    try:
        inspect.signature(make).bind()
    except TypeError as error:
        raise SettingError(f"{says}; {getattr(make, '__name__', 'this one')} is {error}") from None
    except ValueError:
        pass  # it does not say what it takes
    with torch.random.fork_rng(devices=[]):
        if seed is not None:
            torch.manual_seed(seed)
        model = make()
    if not isinstance(model, nn.Module):
        raise SettingError(f"{says}; this one gives a {type(model).__name__}")
    return model


@dataclass(frozen=True, eq=False, kw_only=True)
class Trials:
    """What all trials share."""

    make: Callable[[], nn.Module]
    examples: Any
    method: Method
    size: int
    declared: int | None
    unit: Unit
    adjacency: str | None
    loss: LossLike
    batch_size: float
    rounds: int
    delta: float
    max_physical_batch_size: int | None

    def event(self, noise_multiplier: float, score: tuple[Event, ...]) -> Event:
        """All that one trial releases, with this noise and with its score."""
        method = replace(self.method, noise_multiplier=noise_multiplier)
        steps = tally(method, settings_of(method, self.size, self.batch_size), self.rounds)
        return Composed((*(Repeated(event, count) for event, count in steps.items()), *score))

    def check(self, now: Mapping[str, float], noise: float) -> nn.Module:
        """Refuse what would only fail in a trial, after the whole search was paid for; a model to check with.

        A run is made, which plans and looks at model and loss, and releases nothing.
        """
        one, other = new_model(self.make), new_model(self.make)
        if {id(part) for part in one.parameters()} & {id(part) for part in other.parameters()}:
            raise SettingError(
                "every trial trains a new model, and this function gives the same one, or the same layers, each time: "
                "make them inside of it"
            )
        self._run(one, now, noise, None, None)
        return one

    def run(self, now: Mapping[str, float], noise: float, seed: int | None, folder: Path | None) -> nn.Module:
        """Train one model with these settings; in a folder that a crash left, go on with it."""
        model = new_model(self.make, seed)
        for _ in self._run(model, now, noise, seed, folder):
            pass
        return model

    def _run(
        self, model: nn.Module, now: Mapping[str, float], noise: float, seed: int | None, folder: Path | None
    ) -> Run:
        method = replace(self.method, noise_multiplier=noise, max_grad_norm=now["max_grad_norm"])
        return Run(
            model,
            make_optimizer(method.optimizer, model, now["lr"], now["momentum"]),
            self.examples,
            method=method,
            batch_size=self.batch_size,
            size=self.declared,
            adjacency=self.adjacency,
            loss=self.loss,
            rounds=self.rounds,
            delta=self.delta,
            average_last=now["average_last"],
            seed=seed,
            max_physical_batch_size=self.max_physical_batch_size,
            folder=folder,
            resume=True,
        )
