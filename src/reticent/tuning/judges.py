"""Judges: the examples that say how good a trial is, public ones or private ones."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor, nn

from reticent.accounting import Event, Gaussian, Ledger, Planned
from reticent.errors import SettingError
from reticent.evaluating import evaluate, predict
from reticent.inside import Everyone, GaussianNoise, Randomness, RightAnswers, RoundSettings, Store, Vault, as_store
from reticent.inside.careful import Watch
from reticent.inside.guard import Guard
from reticent.inside.store import blank


def score_of(model: nn.Module, judges: Any, about: dict[str, str | None]) -> float:
    """How good a model is on public examples: its accuracy, or R2 where numbers are predicted.

    >>> import torch
    >>> score_of(nn.Identity(), (torch.eye(3), torch.tensor([0, 1, 1])), {"task": "classes"})
    0.6666666666666666
    """
    found = evaluate(model, judges, task=about.get("task"), outputs=about.get("answers"))
    return float(found["accuracy"] if "accuracy" in found else found["r2"])


@dataclass(frozen=True, eq=False)
class PublicJudges:
    """Examples that were declared public: their score costs nothing."""

    examples: Any
    about: dict[str, str | None]
    """What the loss says of the answers."""
    events: tuple[Event, ...] = ()

    def __len__(self) -> int:
        return len(as_store(self.examples))

    @property
    def words(self) -> str:
        """On what the score is."""
        return f"{len(self)} examples declared public"

    def check(self, model: nn.Module) -> None:
        """Refuse what cannot be scored, before anything is charged."""
        score_of(model, self.examples, self.about)

    def score(self, model: nn.Module, trial: int, randomness: Randomness) -> float:  # noqa: ARG002 - others need them
        """The share of right answers, or R2."""
        return score_of(model, self.examples, self.about)

    def fingerprint(self, randomness: Randomness) -> str:
        """Nothing that noise would have to hide."""
        return randomness.seal(str(len(self)).encode())


@dataclass(frozen=True, eq=False)
class PrivateJudges:
    """Private examples: how many are answered rightly passes the door with noise, and belongs to the trial's cost."""

    store: Store
    noise_multiplier: float

    def __len__(self) -> int:
        return len(self.store)

    @property
    def events(self) -> tuple[Event, ...]:
        """One noisy count."""
        return (Gaussian(self.noise_multiplier),)

    @property
    def words(self) -> str:
        """On what the score is."""
        return f"{len(self)} private examples, counted with noise"

    def check(self, model: nn.Module) -> None:
        """Refuse what cannot be scored, as made-up rows show it."""
        match blank(self.store.take(np.zeros(1, np.int64)), rows=2):
            case [Tensor() as x, Tensor() as y] if y.ndim == 1 and not y.is_floating_point():
                answer = predict(model, x)  # what a model makes in its first pass is not of the examples
                with Guard(model)():
                    predict(model, x)
                if answer.ndim == 2 and answer.shape[1] > 1:
                    return
        raise SettingError(
            "private judges count the right answers of a classifier: give them as (x, y) with whole numbers y, to a "
            "model with one output for each class; anything else takes public judges "
            "(judges_are_public=True, --aside-is-public)"
        )

    def score(self, model: nn.Module, trial: int, randomness: Randomness) -> float:
        """The noisy share of right answers."""
        vault, size = self._vault(randomness, model), len(self)
        with vault.round(trial):
            draw = vault.draw(Everyone(), RoundSettings(size, size, 1.0, self.noise_multiplier))
            count = vault.release(vault.ask(RightAnswers(model), draw), GaussianNoise(self.noise_multiplier))
        return float(count) / size

    def fingerprint(self, randomness: Randomness) -> str:
        """The same noise must not fall on other examples."""
        return self._vault(randomness).fingerprint(every=True)

    def _vault(self, randomness: Randomness, model: nn.Module | None = None) -> Vault:
        # Its ledger is not kept: the tuning's own has one line for all trials, and their number must not be seen.
        first = None if model is None else next(model.parameters(), None)
        device = "cpu" if first is None else first.device
        allowed = Planned(self.events)
        guard: Watch = nullcontext if model is None else Guard(model)
        return Vault(self.store, randomness=randomness, ledger=Ledger(), allowance=allowed, device=device, guard=guard)


Judges = PublicJudges | PrivateJudges
