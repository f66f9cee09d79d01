"""Queries: questions about drawn examples; an answer leaves only through the door."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from reticent.errors import ModelError
from reticent.gradients import norms_and_sum
from reticent.gradients.grouped import rows_each
from reticent.inside.bounds import Bound, enforced
from reticent.inside.by_layer import Divided, Division, division_of
from reticent.inside.drawn import Drawn
from reticent.inside.rounding import Running, at_once
from reticent.inside.settings import RoundSettings
from reticent.inside.store import Batch, as_bytes, examples_in
from reticent.inside.task import Task

SOME = 4096
"""Weights that are compared between ranks whenever they are asked about."""


class Query(Protocol):
    """Promise: one example more or less moves the answer by at most `sensitivity`, in real arithmetic.

    What rounding adds is made up for by noise. A query may say `summed_in`, the type that its sums are made in, which
    is float64 if it does not; None, where its sensitivity leaves room enough for rounding. The answer is a sum over the
    examples, so that the answers for parts of a draw may be added up, unless it is `Parted` or `Undivided`.
    """

    @property
    def sensitivity(self) -> float:
        """The most one example can move the answer."""
        ...

    def answer(self, drawn: Drawn) -> Tensor:
        """The private answer for the examples drawn (possibly none)."""
        ...


@runtime_checkable
class Parted(Protocol):
    """A query whose answer is made of a sum over the examples, and is none itself."""

    def part(self, drawn: Drawn) -> Tensor:
        """The sum for the examples drawn."""
        ...

    def whole(self, total: Tensor) -> Tensor:
        """The answer, from the sum for all of them."""
        ...


@runtime_checkable
class Undivided(Protocol):
    """A query that must see a whole draw at once: one rank answers it for all."""

    undivided: bool


def weights_of(query: Query) -> list[memoryview]:
    """The weights that a query asks about, or some thousands of them, evenly spread: a mark of what they are."""
    task = getattr(query, "task", None)
    if not isinstance(task, Task):
        return []
    vector = task.flat.vector
    return [as_bytes(vector[:: -(-len(vector) // SOME) or 1])]


@dataclass(frozen=True, eq=False)
class GradientSum:
    """The sum of bounded per-example gradients, as one vector (Abadi et al. 2016, algorithm 1)."""

    task: Task
    bound: Bound
    settings: RoundSettings

    @property
    def sensitivity(self) -> float:
        """What the bound promises."""
        return self.bound.sensitivity(self.settings)

    @property
    def summed_in(self) -> torch.dtype:
        """The type of the parameters."""
        return self.task.flat.vector.dtype

    def answer(self, drawn: Drawn) -> Tensor:
        """Add up the gradients, each with the weight that its norm earns, or each part of it with its own."""
        if not isinstance(self.bound, Divided):
            return self.total(drawn, self._weigh)
        division = division_of(self.bound, self.task.flat)
        return self.total(drawn, partial(self._weigh_parts, division), division.part_of)

    def total(self, drawn: Drawn, weigh: Callable[[Tensor], Tensor], parts: Mapping[str, int] | None = None) -> Tensor:
        """The gradients added up, each with the weight that it is given for its norm, or for the norm of each part."""
        task, running = self.task, Running(self.task.flat)

        def begun(found: Tensor) -> Tensor:
            running.begin()
            return weigh(found)

        for batch in drawn.batches():
            limit = at_once(examples_in(batch), task.max_physical_batch_size, rows_each(batch))
            norms_and_sum(
                task.model, task.loss, batch, begun, max_physical_batch_size=limit, into=running.views, parts=parts
            )
        total = running.sum()
        if not torch.isfinite(torch.stack(torch.aminmax(total))).all():  # nan passes through, and nothing is copied
            raise ModelError(
                "the sum of gradients is not finite although every part of it is: the model overflows; lower the "
                "learning rate or max_grad_norm"
            )
        return total

    def _weigh(self, found: Tensor) -> Tensor:
        """The weights that the bound gives for these norms, cut to what it promises."""
        weights = enforced(self.bound, found, self.settings)
        if self.task.diagnostics is not None:
            self.task.diagnostics.saw(found, weights)
        return weights

    def _weigh_parts(self, division: Division, found: Tensor) -> Tensor:
        """The weights of an example's parts, each cut to its share of what the bound promises."""
        weights = division.weights(found, self.sensitivity)
        if self.task.diagnostics is not None:
            self.task.diagnostics.saw(found.square().sum(1).sqrt(), weights.amin(1))
        return weights


@dataclass(frozen=True, eq=False)
class LossChange:
    """By how much the mean loss changed since `before`, cut to [-limit, limit] (Fu et al. 2024, algorithm 2).

    The same examples are judged at both places. No examples: no change.
    """

    task: Task
    before: Tensor
    limit: float
    summed_in: None = None
    """A mean that is cut cannot leave the cut, however it is rounded."""

    @property
    def sensitivity(self) -> float:
        """One example can turn the mean round: from one end of the cut to the other."""
        return 2 * self.limit

    def answer(self, drawn: Drawn) -> Tensor:
        """Mean loss here minus mean loss at `before`."""
        return self.whole(self.part(drawn))

    def part(self, drawn: Drawn) -> Tensor:
        """The sum of the changes, and their number."""
        task = self.task  # a mean that is cut is safe whatever one example does to the others
        changes = loss_changes(task, self.before, drawn, task.losses_in_company)
        return torch.stack([changes.sum(), torch.tensor(float(len(changes)), dtype=torch.float64)])

    def whole(self, total: Tensor) -> Tensor:
        """The mean, cut."""
        mean = total[0] / total[1].clamp(min=1)
        # A loss that is not a number is judged as the worst there is, so that it cannot help a candidate in.
        return torch.nan_to_num(mean, nan=self.limit).clamp(-self.limit, self.limit)


@dataclass(frozen=True, eq=False)
class LossGain:
    """The sum of the examples' gains since `before`, each in units of `limit` and cut to [-1, 1]."""

    task: Task
    before: Tensor
    limit: float

    @property
    def sensitivity(self) -> float:
        """One example adds at most one unit."""
        return 1.0

    def answer(self, drawn: Drawn) -> Tensor:
        """Add up the gains; one that is not a number counts as a full loss."""
        gains = -loss_changes(self.task, self.before, drawn, self.task.losses) / self.limit
        return torch.nan_to_num(gains, nan=-1.0).clamp(-1, 1).sum()


def loss_changes(task: Task, before: Tensor, drawn: Drawn, losses: Callable[[Batch], Tensor]) -> Tensor:
    """Each example's loss here minus its loss at `before`."""
    changes = [torch.zeros(0, dtype=torch.float64)]
    with torch.no_grad():
        for batch in drawn.batches():
            here = losses(batch).double()
            with task.flat.moved_to(before):
                changes.append((here - losses(batch).double()).cpu())
    return torch.cat(changes)
