"""Losses that give one number for each example."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from reticent.inside import Batch


def cross_entropy(model: nn.Module, batch: Batch) -> Tensor:
    """Cross-entropy of each (x, y), for classifiers that answer with logits.

    >>> import torch
    >>> cross_entropy(nn.Linear(2, 3), (torch.zeros(4, 2), torch.zeros(4, dtype=torch.long))).shape
    torch.Size([4])
    """
    x, y = batch
    return functional.cross_entropy(model(x), y, reduction="none")


def squared_error(model: nn.Module, batch: Batch) -> Tensor:
    """Half the squared error of each (x, y), summed over the outputs.

    >>> import torch
    >>> squared_error(nn.Identity(), (torch.zeros(2, 3), torch.ones(2, 3)))
    tensor([1.5000, 1.5000])
    """
    x, y = batch
    error: Tensor = model(x) - y
    return 0.5 * error.square().flatten(1).sum(1)
