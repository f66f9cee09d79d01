"""The form of a matrix: each example's gradient is a sum of outer products over positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from reticent.gradients.forms.dense import Dense, Form, Look, lengths, shortest, squares
from reticent.gradients.scratch import empty

# Writing, reading and weighing one entry of a gradient costs about this many multiplications.
TRAFFIC = 32
# What inner products cost for their many small steps, however small they are: as much as so many multiplications.
OVERHEAD = 2**21
# Below this part of what the positions could add up to, a norm taken from inner products has lost its digits.
CANCELLED = 3e-3
# A factor below `shortest` has lost digits; they tell in the product if the other factor is longer than this.
LONG = 100.0
# What is scaled to less than this may be rounded by more than a ten-millionth: it is nearly subnormal.
SCALED = 1e-30
# Rows of one example that may be rounded into the sum one by one; more of them are added up first.
FEW_ROWS = 16
# On a tensor of weights.
_SMALLEST = "_reticent_smallest"


@dataclass(frozen=True, eq=False)
class Outer(Form):
    """Gradient i is the sum over t of `left[i, t]` (outer) `right[i, t]`.

    With one position the norm is a product of norms and no gradient is ever written out (Goodfellow 2015).

    >>> form, total = Outer(torch.tensor([[[2.0]]]), torch.tensor([[[3.0, 4.0]]])), torch.zeros(1, 2)
    >>> form.add_to(total, torch.tensor([1.0]))
    >>> form.measure()[0], total
    (tensor([100.]), tensor([[6., 8.]]))
    """

    left: Tensor
    right: Tensor
    alone: Tensor | None = None
    """Examples whose positions nearly cancel: each is written out before it meets the sum, or rounding would show."""
    least: float = 0.0
    """No factor of an example is shorter than this, as far as they were measured."""

    def measure(self) -> tuple[Tensor, Form]:
        squared, form, doubt = self.look()
        return (squared, form) if doubt is None else form.settled(squared, float(doubt))

    def look(self) -> Look:
        positions = self.left.shape[1]
        if positions == 1:
            one, other = lengths(self.left), lengths(self.right)
            return Look((one * other).square(), self, torch.minimum(one, other).min())
        n, _, p = self.left.shape
        d = self.right.shape[2]
        if n * positions**2 * (p + d) + OVERHEAD < n * TRAFFIC * p * d:
            squared, cancelled = by_gram(self.left, self.right)
            return Look(squared, replace(self, alone=cancelled), cancelled.any())
        return Look(*self._written().measure())

    def settled(self, squares: Tensor, doubt: float) -> tuple[Tensor, Form]:
        """The doubt is the shortest factor, or whether positions nearly cancel in any example."""
        if self.left.shape[1] > 1:
            return self._written_where_cancelled(squares) if doubt else (squares, replace(self, alone=None))
        if doubt >= shortest(squares.dtype):
            return squares, replace(self, least=doubt)
        return by_product(self.left, self.right), self

    def _written_where_cancelled(self, squared: Tensor) -> tuple[Tensor, Form]:
        """Rounding would decide there: those few examples are written out, so that no norm comes out too small."""
        few = self.alone
        assert few is not None
        squared = squared.index_put((few,), squares(torch.bmm(self.left[few].mT, self.right[few])))
        return squared, self

    def add_to(self, total: Tensor, weights: Tensor) -> None:
        left, right, narrow = self.left, self.right, self._narrow()
        alone = self._alone(narrow, weights)
        if alone is not None and alone.any():
            Dense(self.keep(alone).dense()).add_to(total, weights[alone])
            weights = torch.where(alone, torch.zeros_like(weights), weights)
        scale = weights.to(left.dtype)[:, None, None]
        if narrow is left:
            left = left * scale
        else:
            right = right * scale
        total.addmm_(left.flatten(0, 1).T, right.flatten(0, 1))

    def _narrow(self) -> Tensor:
        """The factor that is scaled by the weights."""
        return self.left if self.left.shape[2] <= self.right.shape[2] else self.right

    def _alone(self, narrow: Tensor, weights: Tensor) -> Tensor | None:
        """Which examples must be added as a whole; None where lengths alone tell that nobody must."""
        largest = self.least * narrow.shape[2] ** -0.5  # an example's largest number is no smaller
        if self.alone is None and largest and largest * smallest(weights) >= 2 * SCALED:
            return None
        found = _vanishing(narrow, weights)
        return found if self.alone is None else self.alone | found

    def dense(self) -> Tensor:
        return self._written().dense()

    def _written(self) -> Dense:
        """Write the gradients out, the longer side last: products with short rows take up to three times as long."""
        n, _, p = self.left.shape
        d = self.right.shape[2]
        if p <= d:
            return Dense(torch.bmm(self.left.mT, self.right, out=empty((n, p, d), self.left)))
        return Dense(torch.bmm(self.right.mT, self.left, out=empty((n, d, p), self.left)), _turned)

    def added(self) -> Form:
        return self if self.left.shape[1] <= FEW_ROWS else self._written()

    def keep(self, rows: Tensor) -> Form:
        return Outer(self.left[rows], self.right[rows], None if self.alone is None else self.alone[rows], self.least)

    def joined(self, others: Sequence[Form]) -> Form:
        """More uses are more positions."""
        uses = [self, *(other for other in others if isinstance(other, Outer))]
        if len(uses) <= len(others):
            return super().joined(others)
        return Outer(torch.cat([use.left for use in uses], 1), torch.cat([use.right for use in uses], 1))


def _turned(gradients: Tensor) -> Tensor:
    return gradients.mT


def by_product(left: Tensor, right: Tensor) -> Tensor:
    """Squared norms of outer products; what the squares of one factor have lost is taken again in float64.

    >>> by_product(torch.full((1, 1, 4), 1e-23), torch.full((1, 1, 1), 1e19)) / 2e-4**2
    tensor([1.])
    """
    one, other = lengths(left), lengths(right)
    squared, lost = (one * other).square(), _lossy(one, other)
    if lost.any():
        exact = lengths(left[lost].double()) * lengths(right[lost].double())
        squared[lost] = exact.square().to(squared.dtype)
    return squared


def smallest(weights: Tensor) -> float:
    """The smallest weight: read once for all parameters, since on an accelerator that is to wait for it."""
    version, found = getattr(weights, _SMALLEST, (-1, 0.0))
    if version != weights._version:
        found = float(weights.min())
        setattr(weights, _SMALLEST, (weights._version, found))
    return float(found)


def _lossy(one: Tensor, other: Tensor) -> Tensor:
    """Where a norm that cannot be believed is multiplied by one that makes it count."""
    least = shortest(one.dtype)
    return ((one < least) & (other > LONG)) | ((other < least) & (one > LONG))


def _vanishing(part: Tensor, weights: Tensor) -> Tensor:
    """Which examples would lose digits if this factor of theirs were scaled: they are scaled as a whole."""
    scaled = part.abs().amax((1, 2)) * weights
    return (scaled < SCALED) & (scaled > 0)


def by_gram(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """Squared norms from the inner products between positions, and where they nearly cancel, or have lost digits."""
    ours, theirs = torch.bmm(left, left.mT), torch.bmm(right, right.mT)
    squared = (ours * theirs).sum((1, 2))
    one, other = (products.diagonal(dim1=1, dim2=2).sqrt() for products in (ours, theirs))
    return squared, (squared < CANCELLED * (one * other).sum(1).square()) | _lossy(one, other).any(1)
