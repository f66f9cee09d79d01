"""Choices: how well each of several steps would do, and a noisy pick of the best (DPAGD, Lee & Kifer 2018)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from reticent.accounting import Event, NoisyMax
from reticent.errors import require
from reticent.inside.drawn import Drawn
from reticent.inside.randomness import Streams
from reticent.inside.sealed import Sealed
from reticent.inside.task import Task


@dataclass(frozen=True, eq=False)
class StepScores:
    """For each step length, minus the sum of losses after that step, each loss cut to [0, limit]."""

    task: Task
    start: Tensor
    direction: Tensor
    lengths: tuple[float, ...]
    limit: float

    @property
    def sensitivity(self) -> float:
        """One example lowers every score, by at most `limit`."""
        return self.limit

    def answer(self, drawn: Drawn) -> Tensor:
        """All scores."""
        scores = torch.zeros(len(self.lengths), dtype=torch.float64)
        with torch.no_grad():
            for batch in drawn.batches():
                for choice, length in enumerate(self.lengths):
                    with self.task.flat.moved_to(self.start - length * self.direction):
                        losses = self.task.losses(batch).double()
                    scores[choice] -= torch.nan_to_num(losses, nan=self.limit).clamp(0, self.limit).sum().cpu()
        return scores


@dataclass(frozen=True)
class BestOf:
    """The index of the largest score after Laplace noise of scale sensitivity / `epsilon` on each.

    `epsilon`-DP because an example moves all scores the same way (Dwork & Roth 2014, claim 3.9). No noisy score leaves,
    so it needs no lattice: rounding can only turn a comparison that is closer than the last digits are (see
    docs/accounting.md).
    """

    epsilon: float

    def __post_init__(self) -> None:
        require(0 < self.epsilon < math.inf, f"the epsilon of a choice must be above 0 and finite, not {self.epsilon}")

    def serves(self, query: object) -> bool:
        """Scores that one example moves all the same way: for any other answer the epsilon does not hold."""
        return query is StepScores or isinstance(query, StepScores)

    def event(self) -> Event:
        """A noisy maximum."""
        return NoisyMax(self.epsilon)

    def _open(self, sealed: Sealed, place: Streams) -> Tensor:
        scale = sealed.sensitivity * sealed.slack / self.epsilon
        noise = place.stream(0).laplace(scale=scale, size=len(sealed._value))
        return torch.argmax(sealed._value + torch.from_numpy(noise))
