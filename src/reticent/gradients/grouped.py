"""Grouped: examples of several rows each, as all visits of one person; the loss of an example is that of its rows."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from reticent.gradients.batches import Batch, PerExampleLoss, chosen, map_tensors, size
from reticent.gradients.task import one_per_example


class Grouped(NamedTuple):
    """Examples of equally many rows: tensors of [examples, rows, ...], and the weight of each row in its example.

    An example of fewer rows repeats its own, with a weight of 0.
    """

    rows: Batch
    weights: Tensor


@dataclass(frozen=True, eq=False)
class GroupedLoss:
    """A loss of rows as one of examples: the weighted sum over an example's rows; plain rows have the loss they had.

    >>> loss = GroupedLoss(lambda model, x: model(x)[:, 0])
    >>> people = Grouped(torch.tensor([[[1.0], [3.0]], [[5.0], [5.0]]]), torch.tensor([[0.5, 0.5], [1.0, 0.0]]))
    >>> loss(nn.Identity(), people)
    tensor([2., 5.])
    """

    loss: PerExampleLoss

    def __call__(self, model: nn.Module, batch: Batch) -> Tensor:
        """One number for each example."""
        if not isinstance(batch, Grouped):
            return self.loss(model, batch)
        examples, rows = batch.weights.shape
        losses = one_per_example(self.loss(model, flattened(batch)), examples * rows)
        return (losses.reshape(examples, rows) * batch.weights.to(losses.dtype)).sum(1)

    def kind(self, batch: Batch) -> Hashable:
        """What decides how the rules run: how many rows there are too, since memory is planned by the example."""
        return type(self), getattr(self.loss, "__code__", type(self.loss)), rows_each(batch)


def flattened(batch: Grouped) -> Batch:
    """All rows, those of an example one after the other.

    >>> flattened(Grouped(torch.tensor([[1, 2], [3, 4]]), torch.ones(2, 2)))
    tensor([1, 2, 3, 4])
    """
    return map_tensors(batch.rows, lambda part: part.flatten(0, 1))


def rows_each(batch: Batch) -> int:
    """How many rows an example of the batch has: 1 if it is not grouped.

    >>> rows_each(torch.ones(5, 3)), rows_each(Grouped(torch.ones(5, 3), torch.ones(5, 3)))
    (1, 3)
    """
    return int(batch.weights.shape[1]) if isinstance(batch, Grouped) else 1


def alike(rows: Batch, batch: Batch) -> Batch:
    """Plain rows, grouped as the batch is; if there are too few they come again.

    >>> alike(torch.arange(3), Grouped(torch.ones(2, 2), torch.ones(2, 2))).rows
    tensor([[0, 1],
            [2, 0]])
    """
    if not isinstance(batch, Grouped) or isinstance(rows, Grouped):
        return rows
    index = torch.arange(batch.weights.numel()) % size(rows)
    shape = batch.weights.shape
    return Grouped(
        map_tensors(chosen(rows, index), lambda part: part.reshape(*shape, *part.shape[1:])),
        torch.full_like(batch.weights, 1 / shape[1]),
    )
