"""Layouts: where in a tensor the examples are, found by looking which entries each example's loss reaches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def find(reached: Sequence[Tensor]) -> Layout | None:
    """Find the layout in which example i's loss reaches (has a gradient at) the entries of example i only.

    Zeros fit every layout and so say nothing: if two examples reach nothing, or two layouts fit, the answer is None.

    >>> import torch
    >>> find([torch.tensor([[1.0, 0.0]] * 3), torch.tensor([[0.0, 1.0]] * 3)])
    <Layout.SECOND: 'the second axis'>
    >>> find([torch.zeros(6, 4)] * 3) is None
    True
    """
    n = len(reached)
    telling = {i: gradient for i, gradient in enumerate(reached) if gradient.any()}
    if len(telling) < n - 1:  # one may be missing: its place is the one that the others leave
        return None
    fitting = [layout for layout in possible(reached[0].shape, n) if _apart(telling, layout, n)]
    return only(fitting) if fitting else Layout.NOWHERE


def possible(shape: Sequence[int], n: int) -> list[Layout]:
    """All layouts in which a shape can hold n examples."""
    return [layout for layout in Layout if layout.fits(shape, n)]


def only(fitting: Sequence[Layout]) -> Layout | None:
    """The one layout that fits, or None."""
    return fitting[0] if len(fitting) == 1 else None


def _apart(telling: Mapping[int, Tensor], layout: Layout, n: int) -> bool:
    return not any(layout.first(gradient, n)[[j for j in range(n) if j != i]].any() for i, gradient in telling.items())
