"""The form of a table: each example's gradient lives in the few rows it looked up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from reticent.gradients.forms.dense import Form
from reticent.gradients.scratch import empty


@dataclass(frozen=True, eq=False)
class Lookup(Form):
    """Gradient i is `rows[i, t]` added to row `index[i, t]` of a table, for every position t.

    >>> index, rows = torch.tensor([[0, 0], [0, 1]]), torch.ones(2, 2, 1)
    >>> form, total = Lookup(index, rows, size=2), torch.zeros(2, 1)
    >>> form.add_to(total, torch.tensor([1.0, 10.0]))
    >>> form.measure()[0], total
    (tensor([4., 2.]), tensor([[12.], [10.]]))
    """

    index: Tensor
    rows: Tensor
    size: int

    def measure(self) -> tuple[Tensor, Form]:
        """Add the rows of equal tokens within an example, then take norms; no positions are compared in pairs."""
        _, starts, sums = self._sums()
        owner = torch.arange(len(starts), device=self.index.device)[:, None].expand_as(starts)[starts]
        squares = torch.linalg.vector_norm(sums, dim=1).square()
        return self.rows.new_zeros(len(starts)).index_add_(0, owner, squares), self

    def _sums(self) -> tuple[Tensor, Tensor, Tensor]:
        """The tokens of each example in order, where another token starts, and the sum of rows for each start."""
        n, positions = self.index.shape
        order = self.index.sort(dim=1)
        starts = torch.ones_like(self.index, dtype=torch.bool)
        starts[:, 1:] = order.values[:, 1:] != order.values[:, :-1]
        segment = (starts.flatten().cumsum(0) - 1).view(n, positions)
        belongs = torch.empty_like(segment).scatter_(1, order.indices, segment)
        rows = self.rows.flatten(0, 1)
        sums = empty((int(segment[-1, -1]) + 1, rows.shape[1]), rows).zero_().index_add_(0, belongs.flatten(), rows)
        return order.values, starts, sums

    def add_to(self, total: Tensor, weights: Tensor) -> None:
        scaled = self.rows * weights.to(self.rows.dtype)[:, None, None]
        total.index_add_(0, self.index.flatten(), scaled.flatten(0, 1))

    def dense(self) -> Tensor:
        n, _, width = self.rows.shape
        table = self.rows.new_zeros(n, self.size, width)
        return table.scatter_add_(1, self.index[..., None].expand_as(self.rows), self.rows)

    def added(self) -> Form:
        tokens, starts, sums = self._sums()
        rows = torch.zeros_like(self.rows)
        rows[starts] = sums
        return Lookup(tokens, rows, self.size)

    def keep(self, rows: Tensor) -> Form:
        return Lookup(self.index[rows], self.rows[rows], self.size)

    def joined(self, others: Sequence[Form]) -> Form:
        """More uses are more positions."""
        others = [other.by_position() for other in others]
        uses = [self, *(other for other in others if isinstance(other, Lookup))]
        if len(uses) <= len(others):
            return super().joined(others)
        return Lookup(torch.cat([use.index for use in uses], 1), torch.cat([use.rows for use in uses], 1), self.size)
