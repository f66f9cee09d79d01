"""Games in which no shadow is trained on a record of the target (Shokri et al. 2017; Salem et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from reticent.attacks.game import Game, joined, refuse_records, unseen_of
from reticent.attacks.intervals import Floats
from reticent.attacks.signals import Bools, Signals, paired_design
from reticent.attacks.suite import Lessons, Target
from reticent.data import Dataset, Examples, attack_split
from reticent.errors import SettingError


@dataclass(frozen=True, eq=False)
class Apart:
    """A game dealt so: records of the target to be guessed, and a pool of others that shadows are trained on."""

    guessed: Examples
    pool: Examples
    population: Examples
    keep: Bools
    """Which shadow is trained on which record of the pool."""
    anew: Examples | None = None
    """What the target is trained on for this game; None: it is attacked as it is."""

    def train(self, number: int) -> Examples:
        """What one shadow is trained on."""
        return self.pool.take(np.flatnonzero(self.keep[number]))

    def asked(self) -> Tensor:
        """What every shadow is asked: the guessed, the pool, the population."""
        return torch.cat([self.guessed.x, self.pool.x, self.population.x])

    def target(self, model: nn.Module, logits: Floats) -> Target:
        """The target, with what the shadows say of its records and what they teach by their own."""
        first, last = len(self.guessed), len(self.guessed) + len(self.pool)
        return Target(
            model,
            self.guessed.x,
            self.guessed.y,
            np.arange(first) < first // 2,
            (self.population.x, self.population.y),
            np.concatenate([logits[:, :first], logits[:, last:]], axis=1),
            np.zeros((len(logits), first), dtype=bool),
            Lessons(self.pool.y.numpy(), logits[:, first:last], self.keep),
        )

    def canary_signals(self, logits: Floats) -> Signals | None:  # noqa: ARG002 - the same question as to a deal
        """No canaries are dealt in these games."""
        return None


def most_apart(dataset: Dataset, spare: Examples | None) -> int:
    """How many members the shadow game can have: a quarter of the others are guessed, most train the shadows."""
    others = len(unseen_of(dataset)) + (0 if spare is None else len(spare))
    return min(len(dataset.train), others // 4)


def deal_apart(game: Game, dataset: Dataset, spare: Examples | None = None) -> Apart:
    """The shadow game: each shadow has half of a pool that the target has never seen, at most as many as the target.

    The pool is the test examples, and those that a `subset` left out of the training.
    """
    refuse_records(game, dataset.name, most_apart(dataset, spare))
    test = unseen_of(dataset)
    others = test if spare is None else joined(test, spare)
    rng = np.random.default_rng(game.seed)
    inside, outside = (rng.permutation(len(part)) for part in (dataset.train, others))
    cut = game.records
    known = cut + max(10, (len(others) - cut) // 6)
    half = min(len(dataset.train), (len(others) - known) // 2)
    return Apart(
        joined(dataset.train.take(inside[:cut]), others.take(outside[:cut])),
        others.take(outside[known : known + 2 * half]),
        others.take(outside[cut:known]),
        paired_design(game.models, 2 * half, seed=game.seed),
    )


def most_salem(dataset: Dataset, spare: Examples | None) -> int:
    """How many members Salem's game can have: as many as there are others, a sixth of all records."""
    return (len(dataset.train) + len(unseen_of(dataset)) + (0 if spare is None else len(spare))) // 6


def deal_salem(game: Game, dataset: Dataset, spare: Examples | None = None) -> Apart:
    """Salem's game: all records are cut 2:1:2:1; target and one shadow are trained alike, each on its own third."""
    refuse_records(game, dataset.name, most_salem(dataset, spare))
    everyone = joined(dataset.train, unseen_of(dataset))
    split = attack_split(everyone if spare is None else joined(everyone, spare), seed=game.seed)
    first = list(range(game.records))
    pool = joined(split.shadow_train, split.shadow_test)
    return Apart(
        joined(split.target_train.take(first), split.target_test.take(first)),
        pool,
        pool.take([]),
        (np.arange(len(pool)) < len(split.shadow_train))[None],
        anew=split.target_train,
    )


def refuse_canaries(game: Game) -> None:
    """Canaries are dealt to shadows that have half of the guessed records each: in the online game."""
    if game.canaries:
        raise SettingError(f"the game {game.kind} deals no canaries: leave them out, or play the online game")
