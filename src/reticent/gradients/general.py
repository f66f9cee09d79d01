"""The exact general path: every example's whole gradient, by `torch.func` where that works, else one by one."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Mapping
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from reticent.errors import ModelError
from reticent.gradients.batches import Batch, PerExampleLoss, map_tensors, rows, size
from reticent.gradients.forms.dense import squares
from reticent.gradients.randomness import undisturbed

Gradients: TypeAlias = dict[str, Tensor]
Path: TypeAlias = Callable[[nn.Module, PerExampleLoss, Batch], Gradients]

# Elements of per-example gradient held at once: 128 MB of float32.
HELD = 2**25


class _LossOf(nn.Module):
    """A model and its loss as one module, so that `functional_call` reaches the model's parameters."""

    def __init__(self, model: nn.Module, loss: PerExampleLoss):
        super().__init__()
        self.model = model
        self._loss = loss

    def forward(self, batch: Batch) -> Tensor:
        return one_per_example(self._loss(self.model, batch), size(batch))


def one_per_example(losses: Tensor, n: int) -> Tensor:
    """Refuse losses that are not one number for each example."""
    if not isinstance(losses, Tensor) or losses.shape != (n,):
        came = tuple(losses.shape) if isinstance(losses, Tensor) else type(losses).__name__
        raise ModelError(
            f"the loss must be one number per example: {n} examples should give shape ({n},), got {came}; "
            "use reduction='none' and average over every axis but the first"
        )
    return losses


def trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    """Name the parameters that are trained; a tied one appears once.

    >>> list(trainable(nn.Linear(2, 1)))
    ['weight', 'bias']
    """
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


def by_vmap(model: nn.Module, loss: PerExampleLoss, batch: Batch) -> Gradients:
    """All gradients at once by `vmap(grad)`; random layers draw for each example."""
    whole = _LossOf(model, loss)

    def loss_of_one(parameters: dict[str, Tensor], row: Batch) -> Tensor:
        alone = map_tensors(row, lambda tensor: tensor.unsqueeze(0))
        losses: Tensor = functional_call(whole, parameters, (alone,))
        return losses[0]

    parameters = {f"model.{name}": parameter.detach() for name, parameter in trainable(model).items()}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="There is a performance drop", category=UserWarning)
        found = vmap(grad(loss_of_one), in_dims=(None, 0), randomness="different")(parameters, batch)
    return {name.removeprefix("model."): gradient for name, gradient in found.items()}


def by_loop(model: nn.Module, loss: PerExampleLoss, batch: Batch) -> Gradients:
    """The gradients of one example after another: always possible, always exact, slow."""
    parameters = trainable(model)
    whole = _LossOf(model, loss)
    found: list[tuple[Tensor | None, ...]] = []
    for i in range(size(batch)):
        with torch.enable_grad():
            one = whole(rows(batch, i, i + 1)).sum()
        found.append(torch.autograd.grad(one, list(parameters.values()), allow_unused=True))
    columns = zip(*found, strict=True)
    return {
        name: torch.stack([torch.zeros_like(parameter) if g is None else g.to_dense() for g in column])
        for (name, parameter), column in zip(parameters.items(), columns, strict=True)
    }


_chosen: weakref.WeakKeyDictionary[nn.Module, Path] = weakref.WeakKeyDictionary()


def path(model: nn.Module, loss: PerExampleLoss, batch: Batch) -> Path:
    """Choose between the two paths by trying `vmap` once on two examples; the answer is kept while the model lives."""
    if model not in _chosen:
        with undisturbed(model):
            try:
                by_vmap(model, loss, rows(batch, 0, 2))
                _chosen[model] = by_vmap
            except ModelError:
                raise
            except Exception:  # torch.func raises many kinds; the loop answers, or says what is wrong
                _chosen[model] = by_loop
    return _chosen[model]


def held_examples(model: nn.Module) -> int:
    """Say how many examples' gradients may be in memory at once."""
    return max(1, HELD // max(1, sum(parameter.numel() for parameter in trainable(model).values())))


def norms_and_sum_of(gradients: Gradients, weigh: Callable[[Tensor], Tensor]) -> tuple[Tensor, Gradients]:
    """Norms and weighted sum from gradients written out; an example whose norm is not finite is left out."""
    norms = torch.stack([squares(gradient) for gradient in gradients.values()]).sum(0).sqrt()
    weights = weigh(norms)
    good = norms.isfinite()
    if not good.all():
        gradients = {name: g[good] for name, g in gradients.items()}
        weights = weights[good]
    return norms, {name: torch.tensordot(weights.to(g.dtype), g, dims=1) for name, g in gradients.items()}


def add_sum(
    model: nn.Module,
    loss: PerExampleLoss,
    batch: Batch,
    weigh: Callable[[Tensor], Tensor],
    totals: Mapping[str, Tensor],
) -> Tensor:
    """Add the weighted sum to `totals` in place and give the norms."""
    norms, sums = norms_and_sum_of(path(model, loss, batch)(model, loss, batch), weigh)
    for name, gradient in sums.items():
        totals[name].detach().add_(gradient)
    return norms
