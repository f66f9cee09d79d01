"""Labelled rows: what a model's last linear layer sees of each example, no longer than a bound, and its class.

A sum over them can be released once, instead of gradients round by round (Wang 2018; Mehta et al. 2022).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from reticent.errors import DataError, ModelError, ReticentError
from reticent.gradients.batches import chosen, size
from reticent.gradients.grouped import Grouped, flattened
from reticent.inside.bounds import Bound, enforced
from reticent.inside.careful import OneByOne, Watch
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
    while isinstance(last, nn.Sequential) and type(last).forward is nn.Sequential.forward and len(last):
        *first, last = last
        before += first
    shared = any(last is part for other in before for part in other.modules())
    trained = {id(part) for part in model.parameters() if part.requires_grad}
    own = type(last).forward is not nn.Linear.forward or shared
    if not isinstance(last, nn.Linear) or own or last.bias is None or trained != {id(last.weight), id(last.bias)}:
        holders = (type(part).__name__ for part in model.modules() if any(True for _ in part.parameters(recurse=False)))
        raise ModelError(
            "this method finds one linear layer with a bias, at the end of a Sequential, in front of which "
            "nothing is trained: take the model 'linear' or 'head', or nn.Sequential(frozen, nn.Linear(...)). This "
            f"one has {', '.join(dict.fromkeys(holders))} (hashed words have none: take other features)"
        )
    half = (torch.float16, torch.bfloat16)
    if any(kept.dtype in half for part in before for kept in (*part.parameters(), *part.buffers())):
        raise ModelError("what stands in front of the last layer is in half precision: call .float() on it")
    return tuple(before), last


def classes_of(labels: Tensor, outputs: int) -> tuple[Tensor, Tensor]:
    """The class of each label, and which labels are any; one output tells two classes apart.

    >>> classes_of(torch.tensor([1, 7]), 2)
    (tensor([1, 0]), tensor([ True, False]))
    """
    if labels.is_floating_point() and outputs > 1:
        raise DataError("labels must be whole numbers, from 0 on")
    labels = labels if labels.is_floating_point() else labels.long()  # a narrow type has no room for `outputs`
    known = (labels == 0) | (labels == 1) if outputs == 1 else (labels >= 0) & (labels < outputs)
    return torch.where(known, labels, 0).long(), known


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """A query about the rows of everybody drawn, cut by the bound and in units of it, and their classes.

    An example of several rows is the mean of them; one that cannot be evaluated, or whose label is none, counts 0.
    What stands in front of the last layer makes each row by itself, whatever it does: many at once under vmap, and
    where that fails, one by one, each inside the guard, so that none leaves anything for the next.
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

    def rows(self, drawn: Drawn) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Rows, classes and weights, in parts."""
        for batch in drawn.batches():
            weights = batch.weights.reshape(-1).double().cpu() if isinstance(batch, Grouped) else None
            plain = flattened(batch) if isinstance(batch, Grouped) else batch
            weights = torch.ones(size(plain), dtype=torch.float64) if weights is None else weights
            for start in range(0, size(plain), self.task.together):
                index = torch.arange(start, min(start + self.task.together, size(plain)))
                yield self._read(chosen(plain, index), weights[index])

    @torch.no_grad()
    def _read(self, batch: Batch, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Bounded rows, classes and weights; rows and weights are 0 where one of them cannot be."""
        if not (isinstance(batch, tuple | list) and len(batch) == 2 and all(isinstance(one, Tensor) for one in batch)):
            raise DataError("a linear layer is found from (x, y): a tensor of inputs and one of labels")
        x, y = batch
        made_up = _alone(self.before, torch.zeros_like(x[:1]), nullcontext)  # what is wrong with all is told of no one
        if y.numel() != len(x) or (made_up is not None and made_up.shape != (1, self.wide)):
            found = "none" if made_up is None else tuple(made_up.shape[1:])
            raise DataError(
                f"a linear layer is found from one row of {self.wide} features and one label of each example; "
                f"an example has features of the form {found} and labels of the form {tuple(y.shape[1:])}"
            )
        guard = self.task.loss.guard if isinstance(self.task.loss, OneByOne) else None
        rows = each_alone(self.before, x, self.wide, guard).double().cpu()
        classes, known = classes_of(y.cpu().reshape(-1), self.outputs)
        lengths = rows.norm(dim=1)
        cut = enforced(self.bound, lengths, self.settings) / self.bound.sensitivity(self.settings)
        usable = known & torch.isfinite(rows).all(1) & torch.isfinite(lengths)
        return torch.where(usable[:, None], rows, 0.0) * cut[:, None], classes, weights * usable


def each_alone(parts: tuple[nn.Module, ...], x: Tensor, wide: int, guard: Watch | None = None) -> Tensor:
    """What some layers make of each row by itself, so that none can depend on the others, whatever the layers do.

    With a guard they are made one by one, and a row that the layers fail for, or make something else of, is not a
    number: nobody hears of it.

    >>> each_alone((nn.BatchNorm1d(2, affine=False, track_running_stats=False),), torch.eye(2), 2, nullcontext)
    tensor([[nan, nan],
            [nan, nan]])
    """
    if not parts:
        return x
    if guard is None:
        return _at_once(parts, x, wide)
    nothing = torch.full((1, wide), torch.nan)
    rows = (_alone(parts, row[None], guard) for row in x)
    return torch.cat([row if row is not None and row.shape == nothing.shape else nothing for row in rows])


def _at_once(parts: tuple[nn.Module, ...], x: Tensor, wide: int) -> Tensor:
    def one(row: Tensor) -> Tensor:
        for part in parts:
            row = part(row)
        return row

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what vmap does slowly
        found: Tensor = torch.func.vmap(one)(x[:, None])
    if found.shape != (len(x), 1, wide):
        raise ValueError("rows of another length")
    return found[:, 0]


def _alone(parts: tuple[nn.Module, ...], row: Tensor, guard: Watch) -> Tensor | None:
    """What the layers make of one row, or None where they fail or make no row of numbers."""
    try:
        with guard():
            for part in parts:
                row = part(row)
            return row.to(torch.float64, copy=True).cpu()
    except ReticentError:
        raise
    except Exception:
        return None
