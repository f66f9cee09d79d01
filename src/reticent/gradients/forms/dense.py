"""What every form can do, and the plain form: each example's gradient written out."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor


def squares(gradients: Tensor) -> Tensor:
    """Give the squared norm of each row, in float32 or better.

    >>> squares(torch.tensor([[3.0, 4.0], [0.0, 2.0]]))
    tensor([25.,  4.])
    """
    return lengths(gradients).square()


def rows(gradients: Tensor) -> Tensor:
    """Give each gradient as one row."""
    return gradients if gradients.dim() == 2 else gradients.reshape(gradients.shape[0], -1)


def lengths(gradients: Tensor) -> Tensor:
    """Give the norm of each row, in float32 or better.

    >>> lengths(torch.tensor([[3.0, 4.0], [0.0, 2.0]]))
    tensor([5., 2.])
    """
    flat = rows(gradients)
    if flat.dtype in (torch.float16, torch.bfloat16):
        flat = flat.float()
    norms: Tensor = torch.linalg.vector_norm(flat, dim=1)
    return norms


def columns(found: Mapping[str, Tensor], parts: Mapping[str, int]) -> Tensor:
    """Give the norm over each part, examples first, from each parameter's squared norms; a part unused has norm 0.

    >>> columns({"w": torch.tensor([9.0, 1.0]), "b": torch.tensor([16.0, 0.0])}, {"w": 1, "b": 1, "idle": 0})
    tensor([[0., 5.],
            [0., 1.]])
    """
    first = next(iter(found.values()))
    total = first.new_zeros(len(first), max(parts.values()) + 1)
    for name, one in found.items():
        total[:, parts[name]] += one
    return total.sqrt()


def shortest(kind: torch.dtype) -> float:
    """The length below which a norm may be too small to be believed: squares that are subnormal, or 0, are lost in it.

    A gradient of 2^40 numbers whose squares are all lost is no longer than a ten-millionth of this, squared.

    >>> 1e-13 < shortest(torch.float32) < 2e-13
    True
    """
    facts = torch.finfo(kind)
    return math.sqrt(2.0**40 * facts.smallest_normal * facts.eps / 1e-7)


class Look(NamedTuple):
    """Squared norms, the form to keep, and a number to be read before they are believed: a device waits for that."""

    squares: Tensor
    form: Form
    doubt: Tensor | None = None


class Form(ABC):
    """One parameter's gradient for every example of a micro-batch."""

    @abstractmethod
    def measure(self) -> tuple[Tensor, Form]:
        """Give the squared norms and the form that is cheapest to keep until the weights are known."""

    def look(self) -> Look:
        """Measure without reading a number: `settled` must be told what the doubt says, if there is one."""
        return Look(*self.measure())

    def settled(self, squares: Tensor, doubt: float) -> tuple[Tensor, Form]:  # noqa: ARG002 - nobody doubts
        """What `measure` gives, after a look and what its doubt says."""
        return squares, self

    @abstractmethod
    def add_to(self, total: Tensor, weights: Tensor) -> None:
        """Add the gradients, each times its weight, to `total` in place."""

    @abstractmethod
    def dense(self) -> Tensor:
        """Write every gradient out: examples first, then the parameter's shape."""

    @abstractmethod
    def keep(self, rows: Tensor) -> Form:
        """Leave out all examples but these."""

    def held(self) -> int:
        """Say how many bytes it keeps."""
        return sum(value.nbytes for value in vars(self).values() if isinstance(value, Tensor))

    def added(self) -> Form:
        """Add up what an example consists of, so that no part of it is rounded into the sum with other examples."""
        return self

    def by_position(self) -> Form:
        """Give rows of a table position by position; any other form as it is."""
        return self

    def joined(self, others: Sequence[Form]) -> Form:
        """Add the gradients of the parameter's other uses: first the sum, then the norm."""
        total = self.dense()
        for other in others:
            total = total + other.dense()
        return Dense(total)


@dataclass(frozen=True, eq=False)
class Dense(Form):
    """Gradients written out, in an order of their own if `shaped` turns that into the parameter's.

    >>> form, total = Dense(torch.tensor([[3.0, 4.0], [0.0, 2.0]])), torch.zeros(2)
    >>> form.add_to(total, torch.tensor([1.0, 10.0]))
    >>> form.measure()[0], total
    (tensor([25.,  4.]), tensor([ 3., 24.]))
    """

    gradients: Tensor
    shaped: Callable[[Tensor], Tensor] | None = None

    def measure(self) -> tuple[Tensor, Form]:
        return squares(self.gradients), self

    def add_to(self, total: Tensor, weights: Tensor) -> None:
        flat = rows(self.gradients)
        weights = weights.to(flat.dtype)
        if self.shaped is None and total.is_contiguous() and total.dtype == flat.dtype:
            (total if total.dim() == 1 else total.view(-1)).addmv_(flat.mT, weights)
            return
        summed = (weights @ flat).view(1, *self.gradients.shape[1:])
        total += summed[0] if self.shaped is None else self.shaped(summed)[0]

    def dense(self) -> Tensor:
        return self.gradients if self.shaped is None else self.shaped(self.gradients)

    def keep(self, rows: Tensor) -> Form:
        return Dense(self.gradients[rows], self.shaped)
