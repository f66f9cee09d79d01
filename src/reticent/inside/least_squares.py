"""Sufficient statistics of least squares: the Gram matrix of bounded rows and their products with the targets.

One answer tells all that a linear model needs (Mehta et al. 2022; Wang 2018, AdaSSP); what is solved of it is free.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from reticent.errors import require
from reticent.inside.bounds import Bound
from reticent.inside.drawn import Drawn
from reticent.inside.labelled_rows import ROUNDED, LabelledRows, parts_of
from reticent.inside.settings import RoundSettings
from reticent.inside.task import Task


@dataclass(frozen=True)
class Statistics:
    """Makes the query for the statistics of the model's last layer."""

    balance: float = 2.0
    """What products with targets count beside products of features: more is less noise on them, more on the others."""

    def __post_init__(self) -> None:
        require(0 < self.balance < math.inf, f"balance must be above 0 and finite, not {self.balance}")

    def __call__(self, task: Task, bound: Bound, settings: RoundSettings) -> StatisticsQuery:
        """The query of one round."""
        before, last = parts_of(task.model)
        return StatisticsQuery(task, bound, settings, before, last.out_features, self)

    def fits(self, model: nn.Module) -> None:
        """Refuse a model that has no such layer, before anything is released for it."""
        parts_of(model)

    def sensitivity(self, outputs: int) -> float:
        """A row of length 1 has a Gram matrix of length 1, and products as long as its target, at right angles to it.

        >>> round(Statistics(2.0).sensitivity(10), 4)
        2.1448
        """
        return math.hypot(1.0, self.balance * target_length(outputs)) * ROUNDED


def target_length(outputs: int) -> float:
    """How long a target is: 1 for the class and 0 for others, less their mean; of one output, plus or minus 1/2."""
    return 0.5 if outputs == 1 else math.sqrt(1 - 1 / outputs)


@dataclass(frozen=True, eq=False)
class StatisticsQuery(LabelledRows):
    """The upper half of the Gram matrix of all rows, then their products with the targets, in float64.

    A row has a 1 behind it for the bias, and the root of 2 below: it is no longer than 1. Entries off the diagonal
    count for two.
    """

    rule: Statistics

    @property
    def sensitivity(self) -> float:
        """What one example's statistics are long at most."""
        return self.rule.sensitivity(self.outputs)

    def answer(self, drawn: Drawn) -> Tensor:
        """Add up the statistics of everybody drawn."""
        wide = self.wide + 1
        gram = torch.zeros(wide, wide, dtype=torch.float64)
        products = torch.zeros(wide, self.outputs, dtype=torch.float64)
        for found, classes, weights in self.rows(drawn):
            rows = torch.cat([found, found.new_ones(len(found), 1)], 1) / math.sqrt(2)
            weighed = rows * weights[:, None]
            gram.addmm_(rows.T, weighed)
            products.addmm_(weighed.T, targets_of(classes, self.outputs))
        return torch.cat([folded(gram), self.rule.balance * products.reshape(-1)])


def targets_of(classes: Tensor, outputs: int) -> Tensor:
    """What the outputs should be for each class.

    >>> targets_of(torch.tensor([1]), 2)
    tensor([[-0.5000,  0.5000]], dtype=torch.float64)
    """
    if outputs == 1:
        return classes.double()[:, None] - 0.5
    return nn.functional.one_hot(classes, outputs).double() - 1 / outputs


def folded(gram: Tensor) -> Tensor:
    """The upper half of a symmetric matrix as a vector of the same length: entries off the diagonal times root 2.

    >>> folded(torch.tensor([[1.0, 2.0], [2.0, 3.0]]))
    tensor([1.0000, 2.8284, 3.0000])
    """
    row, column = torch.triu_indices(len(gram), len(gram))
    return gram[row, column] * torch.where(row == column, 1.0, math.sqrt(2)).to(gram)


def unfolded(half: Tensor, wide: int) -> Tensor:
    """The symmetric matrix that `folded` made a vector of.

    >>> unfolded(torch.tensor([1.0, 2.0 * 2**0.5, 3.0]), 2)
    tensor([[1., 2.],
            [2., 3.]])
    """
    row, column = torch.triu_indices(wide, wide)
    found = half.new_zeros(wide, wide)
    found[row, column] = half / torch.where(row == column, 1.0, math.sqrt(2)).to(half)
    return torch.triu(found) + torch.triu(found, 1).T
