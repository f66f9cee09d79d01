"""The form of a parameter whose rows are used apart, as the three projections of attention are."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from reticent.gradients.forms.dense import Form


@dataclass(frozen=True, eq=False)
class StackedForm(Form):
    """Gradients of blocks of rows, one form a block, of `sizes` rows each."""

    blocks: tuple[Form, ...]
    sizes: tuple[int, ...]

    def measure(self) -> tuple[Tensor, Form]:
        measured = [block.measure() for block in self.blocks]
        total = torch.stack([squares for squares, _ in measured]).sum(0)
        return total, StackedForm(tuple(form for _, form in measured), self.sizes)

    def add_to(self, total: Tensor, weights: Tensor) -> None:
        for block, rows in zip(self.blocks, torch.split(total, list(self.sizes)), strict=True):
            block.add_to(rows, weights)

    def dense(self) -> Tensor:
        return torch.cat([block.dense() for block in self.blocks], dim=1)

    def added(self) -> Form:
        return StackedForm(tuple(block.added() for block in self.blocks), self.sizes)

    def keep(self, rows: Tensor) -> Form:
        return StackedForm(tuple(block.keep(rows) for block in self.blocks), self.sizes)
