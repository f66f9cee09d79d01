"""Places: where the examples are in a tensor, as it follows from the functions that made the tensor."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from reticent.gradients.following.routes import Routed


class NotFollowed(Exception):  # noqa: N818 - not a mistake: the general path takes over
    """A function does something with the examples after which nobody knows whose is what.

    `own` is what it would give each example alone, where that is known.
    """

    def __init__(self, why: str, own: Tensor | None = None):
        super().__init__(why)
        self.own = own


@dataclass(frozen=True, eq=False)
class Place:
    """The examples lie along one axis, of size before * n * after; example i is the middle digit of the index there.

    `order[k]` is the example at the k-th place, where they do not come in their own order. What is not `bound` is the
    same for all examples and only looks as if each had its own: it fits in anywhere.
    """

    axis: int
    before: int = 1
    after: int = 1
    order: Tensor | None = None
    bound: bool = True

    def moved(self, axis: int) -> Place:
        """The same on another axis."""
        return self if axis == self.axis else replace(self, axis=axis)

    def same(self, other: Place) -> bool:
        """Say whether each example is where it is in the other place."""
        if self is other:
            return True
        here, there = (self.axis, self.before, self.after), (other.axis, other.before, other.after)
        return here == there and (
            self.order is other.order
            or (self.order is not None and other.order is not None and torch.equal(self.order, other.order))
        )

    def simple(self) -> bool:
        """Say whether the axis holds the examples and nothing else, in their own order."""
        return self.before == self.after == 1 and self.order is None

    def size(self, n: int) -> int:
        """Say how long the axis is for n examples."""
        return self.before * n * self.after


class Packed(NamedTuple):
    """Rows of a packed sequence: all examples' first steps, then all second ones; `order` as in a place."""

    order: Tensor | None


class EveryExample(NamedTuple):
    """Something of several examples at once: an order they were sorted in, good for nothing but to sort by it."""


class Sizes(NamedTuple):
    """How many examples of a packed sequence have each step: good for nothing but to go with the packed sequence."""


class Lost(NamedTuple):
    """Something after which nobody knows whose is what: it may be looked at for its shape, but not be used."""

    why: str
    own: Tensor | None = None
    """What it would be for each example alone, where that is known."""


class Each(NamedTuple):
    """Several results in different places."""

    places: tuple[Where, ...]


# None: nothing of the examples is in it.
Where: TypeAlias = Place | Packed | EveryExample | Sizes | Routed | Lost | None
"""Where the examples are in a tensor; None where it is nobody's."""
Answer: TypeAlias = Where | Each


def joined(one: Place | None, other: Place | None) -> Place | None:
    """The place of what is made from both, element by element."""
    if one is None or other is None:
        return other if one is None else one
    if one.same(other):
        return one if one.bound else other
    if one.bound and other.bound:
        raise NotFollowed("examples on different axes, or in a different order, meet")
    return one if one.bound else other


def alike(tensor: Tensor, axis: int) -> bool:
    """Whether all entries along an axis are the same, so that a place there says nothing.

    >>> alike(torch.tensor([[1, 2], [1, 2]]), 0), alike(torch.tensor([[1, 2], [1, 2]]), 1)
    (True, False)
    """
    values = tensor.detach()
    return bool((values == values.narrow(axis, 0, 1)).all())


def reordered(order: Tensor | None, index: Tensor, n: int) -> Tensor | None:
    """The order after rows were picked by an index, which must be some order of all examples; None if it is put back.

    Examples that happen to be sorted already count as sorted all the same: what follows must not depend on luck.

    >>> reordered(torch.tensor([2, 0, 1]), torch.tensor([1, 2, 0]), 3) is None
    True
    """
    picked = index.detach().cpu()
    if picked.dim() != 1 or picked.dtype == torch.bool:
        raise NotFollowed("examples are picked by a mask or a table")
    own = torch.arange(n)
    if not torch.equal(picked.sort().values, own):
        raise NotFollowed("some examples are picked, others left out")
    if order is None:
        return picked.clone()
    found = order[picked]
    return None if torch.equal(found, own) else found
