"""The form of a table: each example's gradient lives in the few rows it looked up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from reticent.gradients.forms.dense import Dense, Form, squares
from reticent.gradients.scratch import empty


@dataclass(frozen=True, eq=False)
class Lookup(Form):
    """Gradient i is `rows[i, t]` added to row `index[i, t]` of a table, for every position t.

    >>> index, rows = torch.tensor([[0, 0], [0, 1]]), torch.tensor([[[1.0], [1.0]], [[3.0], [4.0]]])
    >>> form, total = Lookup(index, rows, size=2), torch.zeros(2, 1)
    >>> form.add_to(total, torch.tensor([1.0, 10.0]))
    >>> form.measure()[0], total
    (tensor([ 4., 25.]), tensor([[32.],
            [40.]]))
    """

    index: Tensor
    rows: Tensor
    size: int

    def measure(self) -> tuple[Tensor, Form]:
        """Add the rows of equal tokens within an example, then take norms; no positions are compared in pairs."""
        positions = self.index.shape[1]
        if self.size <= positions:  # written out it is no longer than what was looked up
            return Dense(self.dense()).measure()
        return squares(self._added(self._ranks()[1], positions)), self

    def _ranks(self) -> tuple[Tensor, Tensor]:
        """The different tokens of each example in order, then zeros; and the place of each position's among them."""
        tokens, places = self.index.sort(dim=1)
        rank = functional.pad((tokens[:, 1:] != tokens[:, :-1]).cumsum(1), (1, 0))
        return torch.zeros_like(tokens).scatter_(1, rank, tokens), torch.empty_like(rank).scatter_(1, places, rank)

    def _added(self, slots: Tensor, room: int) -> Tensor:
        """Add each row to a slot of its example, of which there are so many."""
        n, _, width = self.rows.shape
        slots = (slots + torch.arange(0, n * room, room, device=slots.device)[:, None]).flatten()
        sums = empty((n * room, width), self.rows).zero_()
        return sums.index_add_(0, slots, self.rows.flatten(0, 1)).view(n, room, width)

    def add_to(self, total: Tensor, weights: Tensor) -> None:
        scaled = self.rows * weights.to(self.rows.dtype)[:, None, None]
        total.index_add_(0, self.index.flatten(), scaled.flatten(0, 1))

    def dense(self) -> Tensor:
        return self._added(self.index, self.size)

    def added(self) -> Form:
        tokens, ranks = self._ranks()
        return Lookup(tokens, self._added(ranks, self.index.shape[1]), self.size)

    def keep(self, rows: Tensor) -> Form:
        return Lookup(self.index[rows], self.rows[rows], self.size)

    def joined(self, others: Sequence[Form]) -> Form:
        """More uses are more positions."""
        others = [other.by_position() for other in others]
        uses = [self, *(other for other in others if isinstance(other, Lookup))]
        if len(uses) <= len(others):
            return super().joined(others)
        return Lookup(torch.cat([use.index for use in uses], 1), torch.cat([use.rows for use in uses], 1), self.size)
