"""One trial: a private run with some of the settings, and the score that says how good it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from reticent.accounting import Composed, Event, Gaussian, Ledger, Planned, Repeated
from reticent.evaluating import accuracy
from reticent.inside import Everyone, GaussianNoise, Randomness, RightAnswers, RoundSettings, Vault, as_store
from reticent.losses import LossLike
from reticent.methods import Method
from reticent.methods.solving import settings_of, tally
from reticent.optimizers import make_optimizer
from reticent.run import Run


@dataclass(frozen=True, eq=False, kw_only=True)
class Trials:
    """What all trials share."""

    make: Callable[[], nn.Module]
    examples: Any
    method: Method
    size: int
    declared: int | None
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

    def run(self, now: Mapping[str, float], noise: float, seed: int | None, folder: Path | None) -> nn.Module:
        """Train one model with these settings; in a folder that a crash left, go on with it."""
        with torch.random.fork_rng(devices=[]):
            if seed is not None:
                torch.manual_seed(seed)
            model = self.make()
        method = replace(self.method, noise_multiplier=noise, max_grad_norm=now["max_grad_norm"])
        run = Run(
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
        for _ in run:
            pass
        return model


@dataclass(frozen=True, eq=False)
class PublicJudges:
    """Examples that were declared public: their score costs nothing."""

    x: Any
    y: Any
    events: tuple[Event, ...] = ()

    @property
    def words(self) -> str:
        """On what the score is."""
        return f"{len(self.y)} examples declared public"

    def score(self, model: nn.Module, trial: int, randomness: Randomness) -> float:  # noqa: ARG002 - others need them
        """The share of right answers."""
        return accuracy(model, self.x, self.y)

    def fingerprint(self, randomness: Randomness) -> str:
        """Nothing that noise would have to hide."""
        return randomness.seal(str(len(self.y)).encode())


@dataclass(frozen=True, eq=False)
class PrivateJudges:
    """Private examples: how many are answered rightly passes the door with noise, and belongs to the trial's cost."""

    x: Any
    y: Any
    noise_multiplier: float

    @property
    def events(self) -> tuple[Event, ...]:
        """One noisy count."""
        return (Gaussian(self.noise_multiplier),)

    @property
    def words(self) -> str:
        """On what the score is."""
        return f"{len(self.y)} private examples, counted with noise"

    def score(self, model: nn.Module, trial: int, randomness: Randomness) -> float:
        """The noisy share of right answers."""
        vault, size = self._vault(randomness), len(self.y)
        with vault.round(trial):
            draw = vault.draw(Everyone(), RoundSettings(size, size, 1.0, self.noise_multiplier))
            count = vault.release(vault.ask(RightAnswers(model), draw), GaussianNoise(self.noise_multiplier))
        return float(count) / size

    def fingerprint(self, randomness: Randomness) -> str:
        """The same noise must not fall on other examples."""
        return self._vault(randomness).fingerprint(every=True)

    def _vault(self, randomness: Randomness) -> Vault:
        # Its ledger is not kept: the tuning's own has one line for all trials, and their number must not be seen.
        return Vault(as_store((self.x, self.y)), randomness=randomness, ledger=Ledger(), allowance=Planned(self.events))


Judges = PublicJudges | PrivateJudges
