"""The plainest networks: a linear model, an MLP, and a linear head on features made elsewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from torch import nn

from reticent.models.activations import activation as named


def linear(inputs: tuple[int, ...], classes: int) -> nn.Sequential:
    """Logistic regression on the flattened input.

    >>> sum(p.numel() for p in linear((600,), 100).parameters())  # Purchase-100 in PD-SGD
    60100
    """
    return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(inputs), classes))


def mlp(
    inputs: tuple[int, ...], classes: int, activation: str = "tanh", hidden: Sequence[int] = (128, 64)
) -> nn.Sequential:
    """Fully connected layers with an activation after each but the last.

    >>> sum(p.numel() for p in mlp((2,), 3, hidden=(4,)).parameters())
    27
    """
    widths = [math.prod(inputs), *hidden]
    layers: list[nn.Module] = [nn.Flatten()]
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), named(activation)]
    return nn.Sequential(*layers, nn.Linear(widths[-1], classes))


def head(inputs: tuple[int, ...], classes: int) -> nn.Sequential:
    """A linear layer on cached features that starts at zero, so that their unknown scale does not matter at first.

    >>> import torch
    >>> head((512,), 10)(torch.randn(2, 512)).abs().sum().item()
    0.0
    """
    layer = nn.Linear(math.prod(inputs), classes)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return nn.Sequential(nn.Flatten(), layer)
