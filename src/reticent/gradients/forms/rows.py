"""The form of a table of which all examples look up the same rows, as learned positions are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from reticent.gradients.forms.dense import Form, squares
from reticent.gradients.forms.lookup import Lookup


@dataclass(frozen=True, eq=False)
class SharedRows(Form):
    """Gradient i is `rows[i, t]` added to row `index[t]` of a table, for every position t.

    >>> rows, total = torch.tensor([[[3.0], [1.0]], [[0.0], [2.0]]]), torch.zeros(2, 1)
    >>> form = SharedRows(torch.tensor([1, 1]), rows, size=2)
    >>> form.add_to(total, torch.tensor([1.0, 10.0]))
    >>> form.measure()[0], total
    (tensor([16.,  4.]), tensor([[ 0.],
            [24.]]))
    """

    index: Tensor
    rows: Tensor
    size: int

    def measure(self) -> tuple[Tensor, Form]:
        once = self._once()
        return squares(once.rows), once

    def add_to(self, total: Tensor, weights: Tensor) -> None:
        flat = self.rows.flatten(1)
        total.index_add_(0, self.index, (weights.to(flat.dtype) @ flat).view(self.rows.shape[1:]))

    def dense(self) -> Tensor:
        n, _, width = self.rows.shape
        return self.rows.new_zeros(n, self.size, width).index_add_(1, self.index, self.rows)

    def added(self) -> Form:
        return self._once()

    def keep(self, rows: Tensor) -> Form:
        return SharedRows(self.index, self.rows[rows], self.size)

    def joined(self, others: Sequence[Form]) -> Form:
        """More uses are more positions."""
        uses = [self, *(other for other in others if isinstance(other, SharedRows))]
        if len(uses) <= len(others):
            return self.by_position().joined([other.by_position() for other in others])
        return SharedRows(torch.cat([use.index for use in uses]), torch.cat([use.rows for use in uses], 1), self.size)

    def by_position(self) -> Form:
        return Lookup(self.index.expand(len(self.rows), -1), self.rows, self.size)

    def _once(self) -> SharedRows:
        """The same with each row of the table met once."""
        index, place = torch.unique(self.index, return_inverse=True)
        if len(index) == len(self.index):
            return self
        n, _, width = self.rows.shape
        if len(index) == 1:
            return SharedRows(index, self.rows.sum(1, keepdim=True), self.size)
        return SharedRows(index, self.rows.new_zeros(n, len(index), width).index_add_(1, place, self.rows), self.size)
