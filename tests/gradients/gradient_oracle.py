"""The oracle: autograd on one example at a time, and what the engine says beside it."""

from __future__ import annotations

import copy

import torch

from reticent.gradients import general, norms_and_sum
from reticent.gradients.batches import map_tensors, rows, size
from reticent.gradients.task import LossTask, trainable


def clip(norms):
    """Weights that differ between examples and are never all 1."""
    return (0.5 / norms).clamp(max=1)


def loss_of(model, batch):
    """Square every output of the model and add: no rule of ours takes part in it."""
    out = model(*batch) if isinstance(batch, tuple) else model(batch)
    out = out[0] if isinstance(out, tuple) else out
    weights = torch.linspace(0.5, 1.5, out[0].numel(), dtype=out.dtype)
    return (out.flatten(1) + 0.3).square() @ weights / weights.numel()


def double(model, batch):
    """Copies in float64."""
    return copy.deepcopy(model).double(), map_tensors(
        batch, lambda tensor: tensor.double() if tensor.is_floating_point() else tensor
    )


def added_up(gradients, weigh):
    """Norms and weighted sum of gradients written out."""
    norms = torch.sqrt(sum(gradient.reshape(len(gradient), -1).square().sum(1) for gradient in gradients.values()))
    return norms, {name: torch.tensordot(weigh(norms), gradient, 1) for name, gradient in gradients.items()}


def loop(model, loss, batch, weigh=clip):
    """Norms and weighted sum by a loop over single examples."""
    return added_up(general.by_loop(LossTask.of(model, loss), batch), weigh)


def each_row(model, loss, batch, weigh=clip):
    """Norms and weighted sum by one backward pass for each example of the same forward pass."""
    parameters = trainable(model)
    losses = loss(model, batch)
    found = {name: parameter.new_zeros(size(batch), *parameter.shape) for name, parameter in parameters.items()}
    for i in range(size(batch)):
        own = torch.autograd.grad(losses[i], list(parameters.values()), retain_graph=True, allow_unused=True)
        for name, gradient in zip(parameters, own, strict=True):
            if gradient is not None:
                found[name][i] = gradient.to_dense()
    return added_up(found, weigh)


def error(found, expected):
    """The largest relative error of the norms and, against the whole sum, of the sum."""
    (norms, sums), (true_norms, true_sums) = found, expected
    assert sums.keys() == true_sums.keys()
    scale = torch.sqrt(sum(value.square().sum() for value in true_sums.values()))
    off = torch.sqrt(sum((sums[name] - true_sums[name]).square().sum() for name in sums))
    return max(float(((norms - true_norms).abs() / true_norms.clamp(min=1e-12)).max()), float(off / scale))


def assert_exact(model, batch, loss=loss_of):
    """Compare in float64 with the loop, and in float32 with the same float32 pass."""
    doubled = double(model, batch)
    assert error(norms_and_sum(doubled[0], loss, doubled[1], clip), loop(doubled[0], loss, doubled[1])) < 1e-9
    assert error(norms_and_sum(model, loss, batch, clip), each_row(model, loss, batch)) < 1e-5


__all__ = ["assert_exact", "clip", "double", "each_row", "error", "loop", "loss_of", "rows"]
