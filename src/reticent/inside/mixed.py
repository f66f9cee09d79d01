"""Mixed sums: what a round tells goes into later rounds' answers too, so that their noise can be taken out again.

Correlated noise in the form of its proofs: the answers are C x + z, with x the rounds' sums, C a lower triangular
Toeplitz matrix and z fresh noise in every round. Outside, C is inverted (`Unmixed`): noise that was put on one round is
taken away in the next ones. What C is, and who is drawn when, is for a `Mixing` to say: `Bands` or `Buffers`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from reticent.errors import ResumeError, SettingError
from reticent.inside.bounds import Bound
from reticent.inside.drawn import Drawn
from reticent.inside.draws import Memory, Restricted
from reticent.inside.queries import GradientSum
from reticent.inside.settings import RoundSettings
from reticent.inside.task import Task

BEFORE, LATEST, ROUND, MATRIX = "sums before", "latest sum", "round of the latest sum", "matrix"
GRAIN = 2.0**-12
"""Rounding to the lattice moves an answer by at most this share of its sensitivity (inside/lattice.py)."""


class Mixing(Protocol):
    """C, by what is remembered of the sums before: a round's answer is `own` times its sum and `weights` times that."""

    @property
    def own(self) -> float:
        """The first entry of C's first column."""
        ...

    @property
    def weights(self) -> tuple[float, ...]:
        """What each remembered vector counts."""
        ...

    @property
    def numbers(self) -> tuple[float, ...]:
        """All numbers that C is made of: a run goes on with the same ones."""
        ...

    @property
    def sensitivity(self) -> float:
        """How far all answers that an event stands for move together by gradients of length 1."""
        ...

    @property
    def told_in(self) -> int:
        """How many answers that are at most: each is rounded."""
        ...

    @property
    def kept_in(self) -> torch.dtype | None:
        """The type of what is remembered; None: that of the sums."""
        ...

    def after(self, before: Tensor, latest: Tensor) -> Tensor:
        """What is remembered when one more sum is there; nothing is changed in place."""
        ...

    def expected(self, settings: RoundSettings) -> float:
        """How many examples are expected in a draw."""
        ...

    def planned(self, size: int, batch_size: float, rounds: int) -> Mixing:
        """The one for a run of so many rounds, from public numbers alone."""
        ...


@dataclass(frozen=True)
class MixedSum:
    """Makes the query that mixes the sum of bounded gradients with those of the rounds before."""

    mixing: Mixing

    def __call__(self, task: Task, bound: Bound, settings: RoundSettings) -> MixedQuery:
        """The query of one round."""
        return MixedQuery(task, bound, settings, self)


@dataclass(frozen=True, eq=False)
class MixedQuery(GradientSum):
    """The mixture of this round's sum and those before, in float64; what it needs of them is remembered inside.

    A round that is asked again is answered alike: its own sum is kept apart until the next round is asked.
    """

    rule: MixedSum
    _known: dict[str, Memory] = field(default_factory=dict, repr=False)
    """Where the memory is; shared by all copies of the query."""

    @property
    def sensitivity(self) -> float:
        """What the bound promises, times what the matrix makes of it, over all answers that an example is told of in.

        Each of m answers is rounded, by a share g of this at most, which moves all together by sqrt(m) g: s is enough
        if s >= C + sqrt(m) g s.
        """
        mixing = self.rule.mixing
        room = 1 - math.sqrt(mixing.told_in) * GRAIN
        if room <= 0.5:
            raise SettingError(f"sums are mixed over {mixing.told_in} rounds, of which rounding leaves too little")
        return self.bound.sensitivity(self.settings) * mixing.sensitivity / room

    def answer(self, drawn: Drawn) -> Tensor:
        """The mixture."""
        return self.whole(self.part(drawn))

    def part(self, drawn: Drawn) -> Tensor:
        """The sum of this round, for a share of the draw."""
        sampler = drawn.draw.sampler
        if not (isinstance(sampler, Restricted) and sampler.serves(self)):
            raise SettingError(f"{self.rule} is charged on draws of its own, not of {sampler}")
        self._known["memory"] = drawn.memory
        return GradientSum.answer(self, drawn)

    def whole(self, total: Tensor) -> Tensor:
        """This round's sum with those before, each times its entry of C."""
        memory, mixing = self._known["memory"], self.rule.mixing
        before = self._before(memory, total)
        memory[BEFORE], memory[LATEST] = before, total.detach().clone()
        memory[ROUND] = torch.tensor([self.settings.number])
        mixed = mixing.own * total.double()
        for weight, past in zip(mixing.weights, before, strict=True):
            mixed += weight * past.to(mixed)  # a resumed run has them on the CPU
        return mixed

    def _before(self, memory: Memory, total: Tensor) -> Tensor:
        """What is remembered of the rounds before this one."""
        mixing, number = self.rule.mixing, self.settings.number
        matrix = torch.tensor(mixing.numbers, dtype=torch.float64)
        if LATEST not in memory:
            memory[MATRIX] = matrix
            return total.new_zeros(len(mixing.weights), len(total), dtype=mixing.kept_in or total.dtype)
        if not torch.equal(memory[MATRIX], matrix):
            raise ResumeError("the matrix of this run is found otherwise here: go on where it was begun, or begin anew")
        last = int(memory[ROUND])
        if last not in (number, number - 1):
            raise SettingError(f"sums are mixed round by round: after round {last} comes not round {number}")
        before = memory[BEFORE]
        return before if last == number else mixing.after(before, memory[LATEST].to(before.device))
