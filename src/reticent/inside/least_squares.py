"""Sufficient statistics of least squares: the Gram matrix of bounded rows and their products with the targets.

One answer tells all that a linear model needs (Mehta et al. 2022; Wang 2018, AdaSSP); what is solved of it is free.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from reticent.errors import DataError, ModelError, ReticentError, require
from reticent.gradients.batches import chosen, size
from reticent.gradients.grouped import Grouped, flattened
from reticent.inside.bounds import Bound, enforced
from reticent.inside.drawn import Drawn
from reticent.inside.settings import RoundSettings
from reticent.inside.store import Batch
from reticent.inside.task import Task

ROUNDED = 1 + 1e-9
"""For the rounding of a row's length, in float64."""


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
        return StatisticsQuery(task, bound, settings, self, before, last.out_features)

    def fits(self, model: nn.Module) -> None:
        """Refuse a model that has no such layer, before anything is released for it."""
        parts_of(model)

    def sensitivity(self, outputs: int) -> float:
        """A row of length 1 has a Gram matrix of length 1, and products as long as its target, at right angles to it.

        >>> round(Statistics(2.0).sensitivity(10), 4)
        2.1448
        """
        return math.hypot(1.0, self.balance * target_length(outputs)) * ROUNDED


def parts_of(model: nn.Module) -> tuple[tuple[nn.Module, ...], nn.Linear]:
    """What comes before the linear layer at the end, and that layer; all else must be fixed.

    >>> parts_of(nn.Sequential(nn.Flatten(), nn.Linear(4, 2)))
    ((Flatten(start_dim=1, end_dim=-1),), Linear(in_features=4, out_features=2, bias=True))
    """
    before: list[nn.Module] = []
    last = model
    while isinstance(last, nn.Sequential) and len(last):
        *first, last = last
        before += first
    trained = {id(part) for part in model.parameters() if part.requires_grad}
    if not isinstance(last, nn.Linear) or last.bias is None or trained != {id(last.weight), id(last.bias)}:
        holders = (type(part).__name__ for part in model.modules() if any(True for _ in part.parameters(recurse=False)))
        raise ModelError(
            "least squares are solved for one linear layer with a bias, at the end of a Sequential, in front of which "
            "nothing is trained: take the model 'linear' or 'head', or nn.Sequential(frozen, nn.Linear(...)). This "
            f"one has {', '.join(dict.fromkeys(holders))} (hashed words have none: take other features)"
        )
    return tuple(before), last


def target_length(outputs: int) -> float:
    """How long a target is: 1 for the class and 0 for others, less their mean; of one output, plus or minus 1/2."""
    return 0.5 if outputs == 1 else math.sqrt(1 - 1 / outputs)


@dataclass(frozen=True, eq=False)
class StatisticsQuery:
    """The upper half of the Gram matrix of all rows, then their products with the targets, in float64.

    A row is an example's features, cut by the bound and in units of it, with a 1 behind them for the bias, over the
    root of 2: no longer than 1. Entries off the diagonal count for two. An example of several rows is the mean of them;
    one that cannot be evaluated, or whose label is none, counts for nothing.
    """

    task: Task
    bound: Bound
    settings: RoundSettings
    rule: Statistics
    before: tuple[nn.Module, ...]
    outputs: int

    @property
    def sensitivity(self) -> float:
        """What one example's statistics are long at most."""
        return self.rule.sensitivity(self.outputs)

    def answer(self, drawn: Drawn) -> Tensor:
        """Add up the statistics of everybody drawn."""
        wide = self.task.flat.vector.numel() // self.outputs
        gram = torch.zeros(wide, wide, dtype=torch.float64)
        products = torch.zeros(wide, self.outputs, dtype=torch.float64)
        for batch in drawn.batches():
            for rows, targets, weights in self._rows(batch):
                weighed = rows * weights[:, None]
                gram.addmm_(rows.T, weighed)
                products.addmm_(weighed.T, targets)
        return torch.cat([folded(gram), self.rule.balance * products.reshape(-1)])

    @torch.no_grad()
    def _rows(self, batch: Batch) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Rows, targets and weights, in parts; where evaluating fails, row by row, without those that fail."""
        weights = batch.weights.reshape(-1).double().cpu() if isinstance(batch, Grouped) else None
        plain = flattened(batch) if isinstance(batch, Grouped) else batch
        weights = torch.ones(size(plain), dtype=torch.float64) if weights is None else weights
        together = self.task.together
        for start in range(0, size(plain), together):
            index = torch.arange(start, min(start + together, size(plain)))
            try:
                yield *self._of(chosen(plain, index)), weights[index]
            except ReticentError:
                raise
            except Exception:
                yield from self._one_by_one(plain, index, weights)

    def _one_by_one(self, plain: Batch, index: Tensor, weights: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        for row in index:
            try:
                found = self._of(chosen(plain, row.reshape(1)))
            except ReticentError:
                raise
            except Exception:  # a bad record, of which nobody hears
                continue
            yield *found, weights[row.reshape(1)]

    def _of(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Bounded rows and their targets; both are 0 where one of them cannot be."""
        if not (isinstance(batch, tuple | list) and len(batch) == 2):
            raise DataError("least squares are solved for (x, y): a tensor of inputs and one of labels")
        x, y = batch
        for part in self.before:
            x = part(x)
        rows, labels = x.double().cpu().flatten(1), y.cpu().reshape(-1)
        wide = self.task.flat.vector.numel() // self.outputs - 1
        if x.ndim != 2 or rows.shape != (len(labels), wide):  # or an example could be several rows, or none at all
            raise DataError(
                f"least squares are solved for one row of {wide} features and one label of each example; "
                f"{len(y)} have features of the form {tuple(x.shape)} and labels of the form {tuple(y.shape)}"
            )
        targets, known = targets_of(labels, self.outputs)
        scale = self.bound.sensitivity(self.settings)
        cut = enforced(self.bound, rows.norm(dim=1), self.settings) / scale
        usable = known & torch.isfinite(rows).all(1) & torch.isfinite(rows.norm(dim=1))
        rows = torch.cat([torch.where(usable[:, None], rows, 0.0) * cut[:, None], usable.double()[:, None]], 1)
        return rows / math.sqrt(2), torch.where(usable[:, None], targets, 0.0)


def targets_of(labels: Tensor, outputs: int) -> tuple[Tensor, Tensor]:
    """What the outputs should be for each label, and which labels are any.

    >>> targets_of(torch.tensor([1, 7]), 2)
    (tensor([[-0.5000,  0.5000],
            [ 0.0000,  0.0000]], dtype=torch.float64), tensor([ True, False]))
    """
    if labels.is_floating_point() and outputs > 1:
        raise DataError("least squares are solved for labels that are whole numbers, from 0 on")
    if outputs == 1:
        known = (labels == 0) | (labels == 1)
        return torch.where(known, labels.double() - 0.5, 0.0)[:, None], known
    known = (labels >= 0) & (labels < outputs)
    hot = nn.functional.one_hot(torch.where(known, labels, 0).long(), outputs).double() - 1 / outputs
    return torch.where(known[:, None], hot, 0.0), known


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
