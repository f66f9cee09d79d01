"""The game: which records are guessed, and which shadow is trained on which of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
import torch
from torch import Tensor, nn

from reticent.attacks.intervals import Floats
from reticent.attacks.signals import Bools, Signals, confidence, paired_design
from reticent.attacks.suite import Target
from reticent.data import Dataset, Examples, make_canaries
from reticent.errors import SettingError


@dataclass(frozen=True)
class Game:
    """The few numbers that everything else follows from.

    `records` members of the target are to be told from as many non-members, with `models` shadows. `canaries` records
    made to be remembered are dealt to the shadows as well: the average record hides what the worst one suffers.
    """

    records: int
    models: int = 8
    canaries: int = 0
    canary_kind: str = "mislabelled"
    seed: int = 0
    kind: str = "online"
    """online: every guessed record is in half of the shadows; shadow, salem: no shadow sees a record of the target."""

    def design(self) -> dict[str, object]:
        """What tells shadows of this game from those of another."""
        told = asdict(self)
        if self.kind == "online":
            del told["kind"]  # shadows from before there were other games are still its own
        return told


@dataclass(frozen=True, eq=False)
class Deal:
    """A game on a dataset: every shadow gets as many examples as the target had, half of the guessed among them."""

    guessed: Examples
    canaries: Examples
    population: Examples
    always: Examples
    keep: Bools
    anew: None = None
    """The target is attacked as it is."""

    def train(self, number: int) -> Examples:
        """What one shadow is trained on."""
        seen = joined(self.guessed, self.canaries).take(np.flatnonzero(self.keep[number]))
        return joined(self.always, seen)

    def asked(self) -> Tensor:
        """What every shadow is asked: the guessed, the canaries, the population."""
        return torch.cat([self.guessed.x, self.canaries.x, self.population.x])

    def target(self, model: nn.Module, logits: Floats) -> Target:
        """The target with the shadows' answers, canaries left out."""
        guessed = len(self.guessed)
        canaries = range(guessed, guessed + len(self.canaries))
        members = np.arange(guessed) < guessed // 2
        return Target(
            model,
            self.guessed.x,
            self.guessed.y,
            members,
            (self.population.x, self.population.y),
            np.delete(logits, canaries, axis=1),
            self.keep[:, :guessed],
        )

    def canary_signals(self, logits: Floats) -> Signals | None:
        """The score matrix of the canaries alone; None if there are none."""
        if not len(self.canaries):
            return None
        guessed, labels = len(self.guessed), self.canaries.y.numpy()
        phi = np.stack([confidence(one[guessed : guessed + len(labels)], labels) for one in logits])
        return Signals.of(phi, self.keep[:, guessed:])


def unseen_of(dataset: Dataset) -> Examples:
    """The test split of a dataset, which every game needs."""
    if dataset.test is None:
        raise SettingError(f"{dataset.name} has no test split: an attack needs records that the model has not seen")
    return dataset.test


def refuse_records(game: Game, name: str, most: int) -> None:
    """Refuse too few records to say anything, and more than there are."""
    if not 10 <= game.records <= most:
        raise SettingError(f"between 10 and {most} records of {name} can be guessed, not {game.records}")


def most_records(dataset: Dataset, spare: Examples | None = None) -> int:  # noqa: ARG001 - as in the other games
    """How many members a game on this dataset can have, with a population left over."""
    return min(len(dataset.train) // 2, 2 * len(unseen_of(dataset)) // 3)


def deal(game: Game, dataset: Dataset, spare: Examples | None = None) -> Deal:  # noqa: ARG001 - as in the other games
    """Deal the cards of a game; the same numbers deal the same cards."""
    test = unseen_of(dataset)
    refuse_records(game, dataset.name, most_records(dataset))
    if game.canaries % 2 or game.canaries // 2 > len(dataset.train) - game.records:
        raise SettingError(f"canaries come in an even number that fits the dataset, not {game.canaries}")
    rng = np.random.default_rng(game.seed)
    inside, outside = (rng.permutation(len(part)) for part in (dataset.train, test))
    cut, rest = game.records, game.records + game.canaries // 2
    return Deal(
        joined(dataset.train.take(inside[:cut]), test.take(outside[:cut])),
        _canaries(game, dataset),
        test.take(outside[cut:]),
        dataset.train.take(inside[rest:]),
        paired_design(game.models, 2 * game.records + game.canaries, seed=game.seed),
    )


def _canaries(game: Game, dataset: Dataset) -> Examples:
    if game.canaries == 0:
        return dataset.train.take([])
    return make_canaries(dataset.train, game.canaries, classes=dataset.classes, kind=game.canary_kind, seed=game.seed)


def joined(one: Examples, two: Examples) -> Examples:
    """The examples of both."""
    return Examples(torch.cat([one.x, two.x]), torch.cat([one.y, two.y]))
