"""The form of a bag of rows: each example's gradient is one vector, shared out among the rows that it looked up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from reticent.gradients.forms.dense import Form
from reticent.gradients.forms.lookup import Lookup
from reticent.gradients.forms.outer import by_product


@dataclass(frozen=True, eq=False)
class Bag(Form):
    """Gradient i is `shares[i, t] * gradient[i]` added to row `index[i, t]` of a table, for every position t.

    Where no row is met twice, the norm is a product of two norms, and nothing is sorted or written out.

    >>> import torch
    >>> index, shares = torch.tensor([[0, 1], [1, 1]]), torch.tensor([[3.0, 4.0], [1.0, 1.0]])
    >>> form, total = Bag(index, shares, torch.ones(2, 1), size=2), torch.zeros(2, 1)
    >>> form.add_to(total, torch.tensor([1.0, 10.0]))
    >>> form.measure()[0], total
    (tensor([25.,  4.]), tensor([[ 3.],
            [24.]]))
    """

    index: Tensor
    shares: Tensor
    gradient: Tensor
    size: int

    def measure(self) -> tuple[Tensor, Form]:
        if self._each_once():
            return by_product(self.shares, self.gradient), self
        return self.lookup().measure()

    def add_to(self, total: Tensor, weights: Tensor) -> None:
        each = self.shares[..., None] * self.gradient[:, None]
        each *= weights.to(each.dtype)[:, None, None]  # a factor scaled by itself could lose digits; the product not
        total.index_add_(0, self.index.flatten(), each.flatten(0, 1))

    def dense(self) -> Tensor:
        return self.lookup().dense()

    def added(self) -> Form:
        return self if self._each_once() else self.lookup().added()

    def keep(self, rows: Tensor) -> Form:
        return Bag(self.index[rows], self.shares[rows], self.gradient[rows], self.size)

    def joined(self, others: Sequence[Form]) -> Form:
        """Another use may look up the same rows: position by position, then."""
        return self.lookup().joined([other.by_position() for other in others])

    def by_position(self) -> Form:
        return self.lookup()

    def lookup(self) -> Lookup:
        """The same with every position's share written out."""
        return Lookup(self.index.long(), self.shares[..., None] * self.gradient[:, None], self.size)

    def _each_once(self) -> bool:
        """Whether rows come in rising order in every example: a row that is met again has no share at all.

        Equal rows stand side by side where nothing falls, so that looking at neighbours is enough.
        """
        before, after = self.index[:, :-1], self.index[:, 1:]
        nothing = self.shares == 0
        return bool(((after > before) | ((after == before) & nothing[:, :-1] & nothing[:, 1:])).all())
