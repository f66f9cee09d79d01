"""Layouts: the places of the examples that rules know how to work with."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from torch import Tensor

from reticent.gradients.following import Place


class Layout(Enum):
    """The place of the examples."""

    FIRST = "the first axis"
    SECOND = "the second axis"
    MAJOR = "the first axis, each example in consecutive rows"
    MINOR = "the first axis, each example in every n-th row"

    @classmethod
    def of(cls, place: Place) -> Layout | None:
        """The layout of a place, if it is one that rules work with.

        >>> Layout.of(Place(0, after=4))
        <Layout.MAJOR: 'the first axis, each example in consecutive rows'>
        """
        if place.order is not None:
            return None
        if place.axis == 0 and place.before == place.after == 1:
            return cls.FIRST
        match place.axis, place.before, place.after:
            case 1, 1, 1:
                return cls.SECOND
            case 0, 1, _:
                return cls.MAJOR
            case 0, _, 1:
                return cls.MINOR
        return None

    def fits(self, shape: Sequence[int], n: int) -> bool:
        """Say whether a shape can hold n examples in this way."""
        match self:
            case Layout.FIRST:
                return len(shape) > 0 and shape[0] == n
            case Layout.SECOND:
                return len(shape) > 1 and shape[1] == n
            case Layout.MAJOR | Layout.MINOR:
                return len(shape) > 0 and shape[0] > n and shape[0] % n == 0

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
