"""Several small models of one shape at once, with a leading axis of models: for shadow models, privately or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from reticent.errors import ModelError
from reticent.gradients.batches import Batch, PerExampleLoss, map_tensors, size, tensors
from reticent.gradients.stacking import Stacked, StackedBooks, add_to_each
from reticent.gradients.task import one_per_example, trainable


class Stack:
    """Models of one shape with their parameters stacked; the models stay usable, as views of the stack.

    Linear, embedding and normalising layers can be stacked, with anything between them that has no parameters.

    >>> stack = Stack([nn.Linear(2, 1, bias=False) for _ in range(3)])
    >>> stack.parameters["weight"].shape
    torch.Size([3, 1, 2])
    >>> norms, sums = stack.norms_and_sum(lambda m, x: m(x)[:, 0], torch.ones(3, 5, 2), torch.ones_like)
    >>> norms.shape, sums["weight"].tolist()
    (torch.Size([3, 5]), [[[5.0, 5.0]], [[5.0, 5.0]], [[5.0, 5.0]]])
    """

    def __init__(self, models: Sequence[nn.Module]):
        self.models = list(models)
        each = [trainable(model) for model in self.models]
        shapes = [{name: parameter.shape for name, parameter in one.items()} for one in each]
        if not each or any(shape != shapes[0] for shape in shapes):
            raise ModelError("only models with the same trainable parameters can be stacked")
        self.parameters = {name: torch.stack([one[name].detach() for one in each]) for name in each[0]}
        for i, one in enumerate(each):
            for name, parameter in one.items():
                parameter.data = self.parameters[name][i]

    def sums(self, per_example_loss: PerExampleLoss, batches: Batch) -> dict[str, Tensor]:
        """Give the plain sum of the examples' gradients for each model; batches are [models, examples, ...].

        >>> Stack([nn.Linear(2, 1, bias=False)]).sums(lambda m, x: m(x)[:, 0], torch.ones(1, 5, 2))
        {'weight': tensor([[[5., 5.]]])}
        """
        leaves = {name: parameter.detach().requires_grad_() for name, parameter in self.parameters.items()}
        losses = self._losses(per_example_loss, batches, Stacked(self.models[0], leaves, _rows(batches)))
        found = torch.autograd.grad(losses.sum(), list(leaves.values()), allow_unused=True)
        pairs = zip(leaves.items(), found, strict=True)
        return {name: torch.zeros_like(leaf) if gradient is None else gradient for (name, leaf), gradient in pairs}

    def norms_and_sum(
        self, per_example_loss: PerExampleLoss, batches: Batch, weigh: Callable[[Tensor], Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Give norms [models, examples] and, for each model, the sum of its gradients times the weights from `weigh`.

        Promise: as for one model; an example whose norm is not finite has no part. Draws of different sizes are
        filled up to one size, and `weigh` gives the filling weight 0.
        """
        mode = StackedBooks(self.models[0], self.parameters, _rows(batches))
        losses = self._losses(per_example_loss, batches, mode)
        torch.autograd.grad(losses.sum(), mode.anchor, allow_unused=True)
        sums = {name: torch.zeros_like(parameter) for name, parameter in self.parameters.items()}
        with torch.no_grad():
            flat = mode.norms()
            norms = flat.view(len(self.models), -1)
            weights, good = weigh(norms).flatten(), flat.isfinite()
            for name, form in mode.forms.items():
                add_to_each(form, sums[name], weights, good)
        mode.forms.clear()
        return norms, sums

    def _losses(self, loss: PerExampleLoss, batches: Batch, mode: Stacked) -> Tensor:
        if size(batches) != len(self.models):
            raise ValueError(f"{len(self.models)} models need as many batches, got {size(batches)}")
        merged = map_tensors(batches, lambda tensor: tensor.flatten(0, 1))
        followed = map_tensors(merged, mode.whose.begin)
        with torch.enable_grad(), mode:
            losses = one_per_example(loss(self.models[0], followed), size(merged))
        return mode.losses(losses)


def _rows(batches: Batch) -> int:
    return next(tensor.shape[0] * tensor.shape[1] for tensor in tensors(batches))
