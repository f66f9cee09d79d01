"""The entry: norms of every example's gradient and the weighted sum of the gradients, in micro-batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import torch
from torch import Tensor, nn

from reticent.gradients import general
from reticent.gradients.batches import Batch, PerExampleLoss, chunks, size
from reticent.gradients.bookkeeping import books_of
from reticent.gradients.planning import plan_again, plan_of
from reticent.gradients.randomness import undo_attempt
from reticent.gradients.tape import NoRule, SitePlan
from reticent.gradients.task import LossTask


def norms_and_sum(
    model: nn.Module,
    per_example_loss: PerExampleLoss,
    batch: Batch,
    weigh: Callable[[Tensor], Tensor],
    *,
    max_physical_batch_size: int | None = None,
    into: Mapping[str, Tensor] | None = None,
    parts: Mapping[str, int] | None = None,
) -> tuple[Tensor, dict[str, Tensor]]:
    """Give every example's gradient norm and the sum of the gradients, each times the weight chosen from its norm.

    Promise: the norm covers all trainable parameters; `weigh` must treat every example by itself, since it is called
    once for each micro-batch, in order; an example whose norm is not finite gets weight 0 and touches no other;
    nothing is left on the model. `into` names tensors to add the sum to, in place, instead of making new ones. `parts`
    numbers the part of each parameter: then `weigh` is given [examples, parts] norms, and gives as many weights.

    >>> model, x = nn.Linear(2, 1, bias=False), torch.tensor([[3.0, 4.0], [0.0, 2.0]])
    >>> norms_and_sum(model, lambda m, x: m(x)[:, 0], x, lambda norms: (1 / norms).clamp(max=1))
    (tensor([5., 2.]), {'weight': tensor([[0.6000, 1.8000]])})
    """
    task = LossTask.of(model, per_example_loss)
    if into is None:
        into = {name: torch.zeros_like(parameter) for name, parameter in task.parameters.items()}

    def add(sums: Sums, found: Tensor) -> None:
        sums.add_to(into, found, weigh(found if parts is None else sums.columns(parts)), parts)

    return _each_part(task, batch, max_physical_batch_size, add), {name: into[name] for name in task.parameters}


def norms(
    model: nn.Module,
    per_example_loss: PerExampleLoss,
    batch: Batch,
    *,
    max_physical_batch_size: int | None = None,
) -> Tensor:
    """Give the norm of every example's gradient over all trainable parameters.

    >>> norms(nn.Linear(2, 1, bias=False), lambda m, x: m(x)[:, 0], torch.tensor([[3.0, 4.0], [0.0, 2.0]]))
    tensor([5., 2.])
    """

    def add_nothing(_sums: Sums, _found: Tensor) -> None:
        pass

    return _each_part(LossTask.of(model, per_example_loss), batch, max_physical_batch_size, add_nothing)


class Sums(Protocol):
    """What can add up the gradients of a micro-batch once their weights are known."""

    def columns(self, parts: Mapping[str, int]) -> Tensor: ...

    def add_to(
        self, totals: Mapping[str, Tensor], norms: Tensor, weights: Tensor, parts: Mapping[str, int] | None = None
    ) -> None: ...


def _each_part(task: LossTask, batch: Batch, most: int | None, add: Callable[[Sums, Tensor], None]) -> Tensor:
    """Go through a batch in micro-batches, let `add` do what it wants with each, and give all norms."""
    if most is not None and most < 1:
        raise ValueError(f"max_physical_batch_size must be at least 1, got {most}")
    n = size(batch)
    if n == 0:
        return next(iter(task.parameters.values())).new_empty(0)
    plan = plan_of(task, batch)
    at_once = general.held_examples(task) if plan is None else plan.at_once
    found = [_one_part(task, part, plan, add) for part in chunks(batch, n, min(at_once, most or at_once))]
    return found[0] if len(found) == 1 else torch.cat(found)


def _one_part(task: LossTask, part: Batch, plan: SitePlan | None, add: Callable[[Sums, Tensor], None]) -> Tensor:
    """Take a micro-batch by the rules or by the general path; a model that changed its ways is planned again once."""
    rng = torch.get_rng_state()
    for _ in range(2):
        if plan is None:
            break
        try:
            with books_of(task, part, plan) as (books, found):
                add(books, found)
            return found
        except NoRule as reason:
            undo_attempt()
            torch.set_rng_state(rng)
            plan = plan_again(task, part, plan, reason)
    written = general.written_out(task, part)
    found = written.norms()
    add(written, found)
    return found
