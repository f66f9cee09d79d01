"""The entry: norms of every example's gradient and the weighted sum of the gradients, in micro-batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from reticent.errors import ModelError
from reticent.gradients import general
from reticent.gradients.batches import Batch, PerExampleLoss, chunks, size
from reticent.gradients.bookkeeping import books_of
from reticent.gradients.planning import plan_of
from reticent.gradients.tape import NoRule, Plan


def norms_and_sum(
    model: nn.Module,
    per_example_loss: PerExampleLoss,
    batch: Batch,
    weigh: Callable[[Tensor], Tensor],
    *,
    max_physical_batch_size: int | None = None,
    into: Mapping[str, Tensor] | None = None,
) -> tuple[Tensor, dict[str, Tensor]]:
    """Give every example's gradient norm and the sum of the gradients, each times the weight chosen from its norm.

    Promise: the norm covers all trainable parameters; `weigh` must treat every example by itself, since it is called
    once for each micro-batch, in order; an example whose norm is not finite gets weight 0 and touches no other;
    nothing is left on the model. `into` names tensors to add the sum to, in place, instead of making new ones.

    >>> model, x = nn.Linear(2, 1, bias=False), torch.tensor([[3.0, 4.0], [0.0, 2.0]])
    >>> norms_and_sum(model, lambda m, x: m(x)[:, 0], x, lambda norms: (1 / norms).clamp(max=1))
    (tensor([5., 2.]), {'weight': tensor([[0.6000, 1.8000]])})
    """
    parameters = general.trainable(model)
    if not parameters:
        raise ModelError(f"{type(model).__name__} has no trainable parameter; set requires_grad on those to train")
    if max_physical_batch_size is not None and max_physical_batch_size < 1:
        raise ValueError(f"max_physical_batch_size must be at least 1, got {max_physical_batch_size}")
    if into is None:
        into = {name: torch.zeros_like(parameter) for name, parameter in parameters.items()}
    n = size(batch)
    if n == 0:
        some = next(iter(parameters.values()))
        return some.new_empty(0), {name: into[name] for name in parameters}
    plan = plan_of(model, per_example_loss, batch, parameters)
    at_once = general.held_examples(model) if plan is None else plan.at_once
    limit = min(at_once, max_physical_batch_size or at_once)
    found = [
        _add_part(model, per_example_loss, part, weigh, parameters, into, plan) for part in chunks(batch, n, limit)
    ]
    return found[0] if len(found) == 1 else torch.cat(found), {name: into[name] for name in parameters}


def _add_part(
    model: nn.Module,
    loss: PerExampleLoss,
    part: Batch,
    weigh: Callable[[Tensor], Tensor],
    parameters: Mapping[str, nn.Parameter],
    into: Mapping[str, Tensor],
    plan: Plan | None,
) -> Tensor:
    """Add one micro-batch's weighted sum and give its norms; a model that changed its ways is planned again once."""
    coins = torch.get_rng_state()
    for _ in range(2):
        if plan is None:
            break
        try:
            with books_of(model, loss, part, parameters, plan) as (books, norms):
                books.add_to(into, norms, weigh(norms))
            return norms
        except NoRule:
            torch.set_rng_state(coins)
            plan = plan_of(model, loss, part, parameters, again=True)
    return general.add_sum(model, loss, part, weigh, into)


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
    found, _ = norms_and_sum(
        model, per_example_loss, batch, torch.zeros_like, max_physical_batch_size=max_physical_batch_size
    )
    return found
