"""The form of a parameter that is used through another tensor, as a kernel that is standardised before it is used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from reticent.gradients.forms.dense import Form, squares

# Gradients are pulled back for a few examples at a time, so that the numbers on the way stay in the cache.
CACHED = 2**20


class Pull:
    """Takes the gradients of a tensor back to the parameters it was made from, by autograd."""

    def __init__(self, made: Tensor, roots: Sequence[Tensor], form: Form):
        self.made, self.roots, self.form = made, roots, form
        self._squares: list[Tensor] | None = None

    def back(self, gradients: Tensor) -> list[Tensor]:
        """Give the gradients of all roots; the first axis of `gradients` is the example."""
        if len(gradients) == 1:
            found = torch.autograd.grad(self.made, self.roots, gradients[0], retain_graph=True, allow_unused=True)
            found = tuple(None if gradient is None else gradient[None] for gradient in found)
        else:
            found = torch.autograd.grad(
                self.made, self.roots, gradients, retain_graph=True, allow_unused=True, is_grads_batched=True
            )
        zeros = [root.new_zeros(()).expand(len(gradients), *root.shape) for root in self.roots]
        return [zero if gradient is None else gradient for zero, gradient in zip(zeros, found, strict=True)]

    def squares(self) -> list[Tensor]:
        """Give the squared norms for each root, for a few examples at a time."""
        if self._squares is None:
            gradients = self.form.dense()
            some = torch.split(gradients, max(1, CACHED // self.made.numel()))
            each = [[squares(back) for back in self.back(part)] for part in some]
            self._squares = [torch.cat(parts) for parts in zip(*each, strict=True)]
        return self._squares


@dataclass(frozen=True, eq=False)
class Pulled(Form):
    """The gradients of one root: their sum is pulled back once, since pulling back is linear."""

    pull: Pull
    root: int

    def measure(self) -> tuple[Tensor, Form]:
        return self.pull.squares()[self.root], self

    def add_to(self, total: Tensor, weights: Tensor) -> None:
        summed = torch.zeros_like(self.pull.made)
        self.pull.form.add_to(summed, weights)
        total += self.pull.back(summed[None])[self.root][0]

    def dense(self) -> Tensor:
        return self.pull.back(self.pull.form.dense())[self.root]

    def keep(self, rows: Tensor) -> Form:
        return Pulled(Pull(self.pull.made, self.pull.roots, self.pull.form.keep(rows)), self.root)
