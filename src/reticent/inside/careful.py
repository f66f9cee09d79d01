"""Careful answers: an example that cannot be read or evaluated counts for nothing, and nobody hears of it.

An error in the round in which a bad record is drawn would tell that it is among the examples. So where answering fails,
the examples are taken and evaluated one by one. What fails for all alike is found before the run, on made-up rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, is_dataclass, replace
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from reticent.errors import ReticentError
from reticent.gradients.batches import chosen, map_tensors, size, tensors
from reticent.inside.drawn import Drawn
from reticent.inside.queries import Query
from reticent.inside.store import Batch, Store
from reticent.inside.task import Loss, Task


def carefully(query: Query, drawn: Drawn) -> Tensor:
    """The answer; if something fails, once more with every example by itself."""
    try:
        return query.answer(drawn)
    except ReticentError:
        raise  # what our own code refuses is no single record's doing
    except Exception:
        asked: object = query
        task = getattr(asked, "task", None)
        if not isinstance(task, Task) or not is_dataclass(asked) or isinstance(asked, type):
            raise
        if task.diagnostics is not None:
            task.diagnostics.again()
        one_by_one = replace(task, loss=OneByOne(task.loss))
        alone = cast("Query", replace(asked, task=one_by_one))
        return alone.answer(replace(drawn, _store=PatientStore(drawn._store)))


@dataclass(frozen=True, eq=False)
class OneByOne:
    """A loss that evaluates each example by itself; one that fails has a loss of zero, and so a gradient of zero."""

    loss: Loss

    def __call__(self, model: nn.Module, batch: Batch) -> Tensor:
        """One number for each example."""
        # Under vmap all rows would fail together: to look at a value ends it, and a loop over the examples is taken.
        next(tensors(batch)).reshape(-1)[0].item()
        rows = [chosen(batch, torch.tensor([row])) for row in range(size(batch))]
        return torch.cat([self._alone(model, row) for row in rows])

    def _alone(self, model: nn.Module, row: Batch) -> Tensor:
        try:
            return self.loss(model, row)
        except Exception:
            trained = [p for p in model.parameters() if p.requires_grad]
            return torch.stack([p.reshape(-1)[:1].sum() * 0.0 for p in trained]).sum().reshape(1)


class PatientStore:
    """A store that gives, in the place of an example that cannot be read, a row that counts for nothing."""

    def __init__(self, store: Store):
        self._store = store

    def __len__(self) -> int:
        return len(self._store)

    @property
    def at_once(self) -> int:
        """As the store itself."""
        return self._store.at_once

    def take(self, index: NDArray[np.int64]) -> Batch:
        """The examples of these numbers as one batch."""
        parts = [self._alone(int(number)) for number in index]
        like = next((part for part in parts if part is not None), None)
        if like is None:
            like = next(part for number in range(len(self)) if (part := self._alone(number)) is not None)
        return _joined([_nothing(like) if part is None else part for part in parts])

    def _alone(self, number: int) -> Batch | None:
        try:
            return self._store.take(np.array([number], dtype=np.int64))
        except Exception:
            return None


def _nothing(like: Batch) -> Batch:
    """A row of the same shapes and types that is not a number, or zero where there is no such thing."""

    def fill(part: Tensor) -> Tensor:
        return torch.full_like(part, math.nan) if part.is_floating_point() else torch.zeros_like(part)

    return map_tensors(like, fill)


def _joined(parts: list[Batch]) -> Batch:
    """Batches of one row as one batch."""
    columns = zip(*(tensors(part) for part in parts), strict=True)
    joined = iter([torch.cat(column) for column in columns])
    return map_tensors(parts[0], lambda _part: next(joined))
