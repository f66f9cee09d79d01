"""The form of a stack of matrices, one for each expert: an example's rows go to several of them, or to one."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from reticent.gradients.following import Routing
from reticent.gradients.forms.dense import Form
from reticent.gradients.forms.outer import Outer


@dataclass(frozen=True, eq=False)
class Experts(Form):
    """The gradients of each expert that had a row; those of the others, of `experts` in all, are 0.

    >>> one = Outer(torch.tensor([[[2.0]]]), torch.tensor([[[3.0, 4.0]]]))
    >>> form, total = Experts({1: one}, experts=2), torch.zeros(2, 1, 2)
    >>> form.add_to(total, torch.tensor([1.0]))
    >>> form.measure()[0], total
    (tensor([100.]), tensor([[[0., 0.]],
    <BLANKLINE>
            [[6., 8.]]]))
    """

    each: dict[int, Form]
    experts: int

    def measure(self) -> tuple[Tensor, Form]:
        measured = {expert: form.measure() for expert, form in self.each.items()}
        total = torch.stack([squares for squares, _ in measured.values()]).sum(0)
        return total, Experts({expert: form for expert, (_, form) in measured.items()}, self.experts)

    def add_to(self, total: Tensor, weights: Tensor) -> None:
        for expert, form in self.each.items():
            form.add_to(total[expert], weights)

    def dense(self) -> Tensor:
        written = {expert: form.dense() for expert, form in self.each.items()}
        first = next(iter(written.values()))
        gradients = first.new_zeros(len(first), self.experts, *first.shape[1:])
        for expert, own in written.items():
            gradients[:, expert] = own
        return gradients

    def added(self) -> Form:
        return Experts({expert: form.added() for expert, form in self.each.items()}, self.experts)

    def keep(self, rows: Tensor) -> Form:
        return Experts({expert: form.keep(rows) for expert, form in self.each.items()}, self.experts)

    def held(self) -> int:
        return sum(form.held() for form in self.each.values())


def outer_by_expert(routing: Routing, experts: int, left: Tensor, right: Tensor) -> Experts:
    """Outer products of routed rows, for so many experts.

    Every example gets as much room at an expert as the one with the most rows there; what it does not need stays 0.
    """
    slots, sizes = routing.rooms
    lengths = [routing.n * size for size in sizes]
    sides = [
        torch.split(rows.new_zeros(sum(lengths), rows.shape[1]).index_copy_(0, slots, rows), lengths)
        for rows in (left, right)
    ]
    each = [Outer(*(rows.view(routing.n, -1, rows.shape[1]) for rows in pair)) for pair in zip(*sides, strict=True)]
    return Experts({expert: form for expert, form in enumerate(each) if sizes[expert]}, experts)
