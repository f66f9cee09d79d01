"""The audited toy of methods that find one linear layer: rows with classes, whose gradients nobody asks for."""

from __future__ import annotations

import torch
from torch import Tensor

from reticent.methods import Method
from reticent.outside import Solved
from reticent.outside.solution import Solution

CLASSES = 2
WIDE = 60
"""No row is longer for least squares: what is released grows with the square."""


def finds_one_layer(method: Method) -> bool:
    """Whether a method asks for rows and their classes, and not for gradients."""
    return isinstance(method.direction, Solution)


def widest(method: Method) -> int | None:
    """How long a row may be."""
    return WIDE if isinstance(method.direction, Solved) else None


def labelled(data: tuple[Tensor, Tensor], wide: int | None = None) -> tuple[Tensor, Tensor]:
    """The other toy's examples as rows with classes: a canary as long as its gradient, or with no class if absent.

    >>> labelled((torch.tensor([[3.0, 0.0, 1.0, 0.0], [0.0, 2.0, 0.0, 0.0]]), torch.tensor([[3.0], [0.0]])))
    (tensor([[5.1962, 0.0000],
            [0.0000, 3.4641]]), tensor([0, 1]))
    """
    rows, scale = data
    x = rows[:, : rows.shape[1] // 2] * 3**0.5
    y = torch.arange(len(x)) % CLASSES
    y[0] = 0 if scale[0] > 0 else CLASSES
    return x[:, :wide], y
