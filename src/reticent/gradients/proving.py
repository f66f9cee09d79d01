"""The proof: on a few rows, the rules give what autograd gives with one backward pass for each example."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from reticent.gradients.batches import Batch
from reticent.gradients.bookkeeping import books_of
from reticent.gradients.general import Gradients, gradients_of
from reticent.gradients.recomputing import nothing_recomputed
from reticent.gradients.tape import NoRule, SitePlan
from reticent.gradients.task import LossTask

# A wrong rule is off by far more than float32 rounds.
ROUNDING = 1e-3


def prove(task: LossTask, batch: Batch, plan: SitePlan) -> None:
    """Compare norms and sum with one backward pass for each example over the same forward pass."""
    rng = torch.get_rng_state()
    true_norms, sums = _one_backward_each(task, batch)
    torch.set_rng_state(rng)
    largest = {name: float(theirs.abs().max()) for name, theirs in sums.items()}
    nothing = ROUNDING**2 * max(largest.values())  # a gradient of 0 is only nearly 0
    for theirs in sums.values():
        theirs.neg_()  # ours are added to it: a large model has no room for both
    with books_of(task, batch, plan) as (books, norms):
        books.add_to(sums, norms, _different(norms))
    if not torch.allclose(norms, true_norms, ROUNDING, nothing, equal_nan=True):
        raise NoRule(("the proof", ("norms",)), "the rules do not give what autograd gives")
    for name, apart in sums.items():
        if not float(apart.abs_().max()) <= ROUNDING * largest[name] + nothing:
            raise NoRule(("the proof", (name,)), "the rules do not give what autograd gives")


def _different(norms: Tensor, first: int = 1) -> Tensor:
    """Weights that make every example count, and of which no two cancel a third; the first has the place `first`."""
    places = torch.arange(first, first + len(norms), dtype=norms.dtype, device=norms.device)
    return places.pow(1.5) / norms.clamp(min=1e-6)


def _one_backward_each(task: LossTask, batch: Batch) -> tuple[Tensor, Gradients]:
    """Norms and the weighted sum, with no more than one example's gradient in memory at a time."""
    with torch.enable_grad(), nothing_recomputed():
        losses = task.losses(batch)
    sums = {name: torch.zeros_like(parameter) for name, parameter in task.parameters.items()}

    def add(place: int, loss: Tensor) -> Tensor:
        own = gradients_of(task, loss, again=True)
        norm: Tensor = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(one) for one in own.values()]))
        if norm.isfinite():
            weight = float(_different(norm[None], place))
            for name, gradient in own.items():
                sums[name].detach().add_(gradient, alpha=weight)
        return norm

    return torch.stack([add(place, loss) for place, loss in enumerate(losses.unbind(), 1)]), sums


@contextmanager
def other_weights(parameters: Mapping[str, nn.Parameter]) -> Iterator[None]:
    """Give every parameter a nudge of its own size, and take it back."""
    kept = {name: parameter.detach().clone() for name, parameter in parameters.items()}
    try:
        for name, parameter in parameters.items():
            usual = float(kept[name].abs().mean())
            parameter.data.add_(torch.randn_like(kept[name]), alpha=usual / 2 or 0.1)
        yield
    finally:
        for name, parameter in parameters.items():
            parameter.data.copy_(kept[name])
