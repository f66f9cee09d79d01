"""Sums of classes: the rows of each class added up, and how many there are, in one answer (Wahdany et al. 2025)."""

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
class ClassSums:
    """Makes the query for the sums of the classes that the model's last layer tells apart.

    `head` is how long a row's 1 is, with which it is counted, and the row itself has the rest of the length 1: more is
    less noise on how many each class has, and more on what is added up.
    """

    head: float = 0.2

    def __post_init__(self) -> None:
        require(0 < self.head < 1, f"head must lie between 0 and 1, not {self.head}")

    @property
    def body(self) -> float:
        """How long a row is at most, beside its head: together they are no longer than 1.

        >>> ClassSums(0.6).body
        0.8
        """
        return math.sqrt(1 - self.head**2)

    def __call__(self, task: Task, bound: Bound, settings: RoundSettings) -> ClassSumsQuery:
        """The query of one round."""
        before, last = parts_of(task.model)
        return ClassSumsQuery(task, bound, settings, before, last.out_features, self)

    def fits(self, model: nn.Module) -> None:
        """Refuse a model that has no such layer, before anything is released for it."""
        parts_of(model)


@dataclass(frozen=True, eq=False)
class ClassSumsQuery(LabelledRows):
    """A line for each class: the sum of its rows, and how many they are times `head`, in float64."""

    rule: ClassSums
    sensitivity: float = ROUNDED
    """An example adds to one line only, and what it adds is no longer than 1."""

    def answer(self, drawn: Drawn) -> Tensor:
        """Add up everybody drawn; where one output tells two classes apart, there are two lines."""
        total = torch.zeros(max(2, self.outputs), self.wide + 1, dtype=torch.float64)
        for found, classes, weights in self.rows(drawn):
            lines = torch.cat([found * self.rule.body, found.new_full((len(found), 1), self.rule.head)], 1)
            total.index_add_(0, classes, lines * weights[:, None])
        return total
