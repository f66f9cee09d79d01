"""Layouts: where in a tensor the examples are, found by looking which entries each example's loss reaches."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from torch import Tensor


class Layout(Enum):
    """The place of the examples."""

    FIRST = "the first axis"
    SECOND = "the second axis"
    MAJOR = "the first axis, each example in consecutive rows"
    MINOR = "the first axis, each example in every n-th row"
    NOWHERE = "nowhere: the same for all examples"

    def fits(self, shape: Sequence[int], n: int) -> bool:
        """Say whether a shape can hold n examples in this way."""
        match self:
            case Layout.FIRST:
                return len(shape) > 0 and shape[0] == n
            case Layout.SECOND:
                return len(shape) > 1 and shape[1] == n
            case Layout.MAJOR | Layout.MINOR:
                return len(shape) > 0 and shape[0] > n and shape[0] % n == 0
            case Layout.NOWHERE:
                return False

    def first(self, tensor: Tensor, n: int) -> Tensor:
        """View a tensor with its examples on the first axis.

        >>> import torch
        >>> Layout.MINOR.first(torch.arange(6), 2)
        tensor([[0, 2, 4],
                [1, 3, 5]])
        """
        match self:
            case Layout.FIRST:
                return tensor
            case Layout.SECOND:
                return tensor.transpose(0, 1)
            case Layout.MAJOR:
                return tensor.reshape(n, -1, *tensor.shape[1:])
            case Layout.MINOR:
                return tensor.reshape(-1, n, *tensor.shape[1:]).transpose(0, 1)
            case Layout.NOWHERE:
                raise ValueError("a tensor that is the same for all examples has no example axis")


def find(reached: Sequence[Tensor]) -> Layout:
    """Find the layout in which example i's loss reaches (has a gradient at) the entries of example i only.

    >>> import torch
    >>> find([torch.tensor([[1.0, 0.0]] * 3), torch.tensor([[0.0, 1.0]] * 3)])
    <Layout.SECOND: 'the second axis'>
    """
    n = len(reached)
    for layout in Layout:
        if layout.fits(reached[0].shape, n) and all(
            not layout.first(gradient, n)[[j for j in range(n) if j != i]].any() for i, gradient in enumerate(reached)
        ):
            return layout
    return Layout.NOWHERE
