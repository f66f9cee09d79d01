"""Labelled rows: what a model's last linear layer sees of each example, no longer than a bound, and its class.

A sum over them can be released once, instead of gradients round by round (Wang 2018; Mehta et al. 2022).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from reticent.errors import DataError, ModelError, ReticentError
from reticent.gradients.batches import chosen, size
from reticent.gradients.grouped import Grouped, flattened
from reticent.inside.bounds import Bound, enforced
from reticent.inside.drawn import Drawn
from reticent.inside.settings import RoundSettings
from reticent.inside.store import Batch
from reticent.inside.task import Task

ROUNDED = 1 + 1e-9
"""For the rounding of a row's length, in float64."""


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
            "this method finds one linear layer with a bias, at the end of a Sequential, in front of which "
            "nothing is trained: take the model 'linear' or 'head', or nn.Sequential(frozen, nn.Linear(...)). This "
            f"one has {', '.join(dict.fromkeys(holders))} (hashed words have none: take other features)"
        )
    return tuple(before), last


def classes_of(labels: Tensor, outputs: int) -> tuple[Tensor, Tensor]:
    """The class of each label, and which labels are any; one output tells two classes apart.

    >>> classes_of(torch.tensor([1, 7]), 2)
    (tensor([1, 0]), tensor([ True, False]))
    """
    if labels.is_floating_point() and outputs > 1:
        raise DataError("labels must be whole numbers, from 0 on")
    known = (labels == 0) | (labels == 1) if outputs == 1 else (labels >= 0) & (labels < outputs)
    return torch.where(known, labels, 0).long(), known


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """The rows of everybody drawn, cut by the bound and in units of it, their classes, and what each counts.

    An example of several rows is the mean of them; one that cannot be evaluated, or whose label is none, counts 0.
    """

    task: Task
    bound: Bound
    settings: RoundSettings
    before: tuple[nn.Module, ...]
    outputs: int

    @property
    def wide(self) -> int:
        """Numbers in a row."""
        return self.task.flat.vector.numel() // self.outputs - 1

    def of(self, drawn: Drawn) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Rows, classes and weights, in parts; where evaluating fails, row by row, without those that fail."""
        for batch in drawn.batches():
            weights = batch.weights.reshape(-1).double().cpu() if isinstance(batch, Grouped) else None
            plain = flattened(batch) if isinstance(batch, Grouped) else batch
            weights = torch.ones(size(plain), dtype=torch.float64) if weights is None else weights
            together = self.task.together
            for start in range(0, size(plain), together):
                index = torch.arange(start, min(start + together, size(plain)))
                yield from self._some(plain, index, weights)

    @torch.no_grad()
    def _some(self, plain: Batch, index: Tensor, weights: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        try:
            yield self._read(chosen(plain, index), weights[index])
        except ReticentError:
            raise
        except Exception:  # a bad record, of which nobody hears
            if len(index) > 1:
                for row in index:
                    yield from self._some(plain, row.reshape(1), weights)

    def _read(self, batch: Batch, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Bounded rows, classes and weights; rows and weights are 0 where one of them cannot be."""
        if not (isinstance(batch, tuple | list) and len(batch) == 2):
            raise DataError("a linear layer is found from (x, y): a tensor of inputs and one of labels")
        x, y = batch
        for part in self.before:
            x = part(x)
        rows, labels = x.double().cpu().flatten(1), y.cpu().reshape(-1)
        if x.ndim != 2 or rows.shape != (len(labels), self.wide):  # or an example could be several rows, or none at all
            raise DataError(
                f"a linear layer is found from one row of {self.wide} features and one label of each example; "
                f"{len(y)} have features of the form {tuple(x.shape)} and labels of the form {tuple(y.shape)}"
            )
        classes, known = classes_of(labels, self.outputs)
        lengths = rows.norm(dim=1)
        cut = enforced(self.bound, lengths, self.settings) / self.bound.sensitivity(self.settings)
        usable = known & torch.isfinite(rows).all(1) & torch.isfinite(lengths)
        return torch.where(usable[:, None], rows, 0.0) * cut[:, None], classes, weights * usable
