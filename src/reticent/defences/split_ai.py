"""Split-AI (Tang et al. 2022): an ensemble that answers for an example only by models that never saw it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from reticent.data import Examples
from reticent.defences.defended import probabilities
from reticent.defences.plain import Plain, Tell, known_chance, seeds
from reticent.defences.together import fit_together
from reticent.errors import DataError, ModelError, ReticentError


@dataclass(frozen=True, eq=False)
class SplitAI:
    """K sub-models, what each was trained on, and for each example the L that are to answer for it.

    `unseen` is the paper's non-member table (one row of L sub-models for each example); `seen[k, i]` says that
    sub-model k was trained on example i. Both are secrets of the training data, here for tests and adaptive attacks.

    Promise: `answer` never asks a model that saw the example.
    """

    models: tuple[nn.Module, ...]
    unseen: Tensor
    seen: Tensor

    def answer(self, x: Tensor, rows: Tensor) -> Tensor:
        """The average prediction for training examples at these rows, each by the models that did not see it."""
        broken = self.seen[self.unseen[rows], rows[:, None]].nonzero()
        if len(broken):
            row, place = broken[0].tolist()
            example = int(rows[row])
            raise ReticentError(
                f"sub-model {int(self.unseen[example, place])} was trained on example {example} and must not answer "
                "for it: draw the table and train the sub-models anew, from the same table"
            )
        return self._average(x, self.unseen[rows])

    def answer_outsiders(self, x: Tensor, *, seed: int | None = None) -> Tensor:
        """The average prediction for other inputs: each by the models of a training example picked at random."""
        rng = torch.Generator().manual_seed(seeds(seed, 1)[0])
        return self._average(x, self.unseen[torch.randint(len(self.unseen), (len(x),), generator=rng)])

    def _average(self, x: Tensor, table: Tensor) -> Tensor:
        total: Tensor | None = None
        for number, model in enumerate(self.models):
            asked = (table == number).any(1).nonzero().squeeze(1)
            if len(asked) == 0:
                continue
            answers = probabilities(model, x[asked])
            total = answers.new_zeros(len(x), answers.shape[1]) if total is None else total
            total[asked] += answers
        if total is None:
            raise DataError("there is nothing to answer: no inputs were given")
        return total / table.shape[1]


def draw_table(size: int, K: int, L: int, seed: int) -> Tensor:
    """For each example L of the K sub-models, at random and without repetition: those that will not see it.

    >>> draw_table(3, K=4, L=2, seed=0).shape
    torch.Size([3, 2])
    """
    return torch.rand(size, K, generator=torch.Generator().manual_seed(seed)).argsort(1)[:, :L]


def split_ai(
    make_model: Callable[[], nn.Module],
    examples: Examples,
    plain: Plain,
    *,
    K: int,
    L: int,
    seed: int,
    tell: Tell,
) -> SplitAI:
    """Draw the table and train each sub-model on the examples it may see (Tang et al. 2022, Split-AI training).

    >>> def make(): return nn.Sequential(nn.Linear(2, 2))
    >>> pair = Examples(torch.randn(40, 2), torch.arange(40) % 2)
    >>> ensemble = split_ai(make, pair, Plain(epochs=1), K=5, L=2, seed=0, tell=lambda updates: None)
    >>> len(ensemble.models), ensemble.answer(pair.x, torch.arange(40)).shape
    (5, torch.Size([40, 2]))
    """
    drawing, chance, order = seeds(seed, 3)
    unseen = draw_table(len(examples), K, L, drawing)
    seen = torch.ones(K, len(examples), dtype=torch.bool)
    seen[unseen.T, torch.arange(len(examples))] = False
    rows = [own.nonzero().squeeze(1) for own in seen]
    if min(len(own) for own in rows) == 0:
        raise DataError(f"{len(examples)} examples are too few: one of the {K} sub-models got none. Use fewer (K)")
    with known_chance(chance):
        models = tuple(make_model() for _ in range(K))
    refuse_shared(models)
    own, rounds = sub_training(plain, len(examples), K, L)
    fit_together(models, examples.x, examples.y, rows, own, rounds=rounds, seeds=seeds(order, K), tell=tell)
    return SplitAI(models, unseen, seen)


def sub_training(plain: Plain, size: int, K: int, L: int) -> tuple[Plain, int]:
    """How a sub-model is trained and for how many rounds: by the number of examples it sees on average.

    >>> sub_training(Plain(epochs=2, batch_size=10), 100, K=25, L=10)[1]
    12
    """
    shown = max(1, round(size * (K - L) / K))
    own = plain.within(shown)
    return own, own.rounds(shown)


def refuse_shared(models: Sequence[nn.Module]) -> None:
    """Refuse models that share what is trained: through it, each would see the others' examples.

    >>> refuse_shared([nn.Linear(1, 1), nn.Linear(1, 1)])
    """
    trained = [id(part) for model in models for part in model.parameters() if part.requires_grad]
    if len(set(trained)) < len(trained):
        raise ModelError("make_model must build a fresh module at each call: these share trainable parameters")
