"""Converting: numbers in the types that a model calculates with, where only the type changes and not the meaning."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from reticent.gradients.batches import map_tensors
from reticent.inside.persons import Persons, store_of
from reticent.inside.store import Batch, Store, blank, moved
from reticent.inside.task import refuse_lazy

ROWS = 4
"""So many rows are made up to try a model on."""


def readable(examples: Any, model: nn.Module, probes: Batch | None = None) -> tuple[Store, Batch, Batch | None]:
    """The examples as a store in the model's types, made-up rows of the same form, and the public rows likewise.

    >>> store, rows, _ = readable((np.zeros((9, 2)), np.arange(9)), nn.Linear(2, 1))
    >>> len(store), rows[0].dtype, rows[1].shape
    (9, torch.float32, torch.Size([4]))
    """
    refuse_lazy(model)
    dtype, first = dtype_of(model), next(model.parameters(), None)
    given = store_of(examples)
    store = Converted(given.rows if isinstance(given, Persons) else given, dtype)
    rows = moved(blank(store.take(np.zeros(1, np.int64)), ROWS), "cpu" if first is None else first.device)
    people = replace(given, rows=store) if isinstance(given, Persons) else store
    return people, rows, None if probes is None else converted(probes, dtype)


def converted(batch: Batch, dtype: torch.dtype | None) -> Batch:
    """Floating numbers in this type (None: as they are), whole ones as int64.

    Images of bytes stay as they are, since nobody says by what they are to be divided.

    >>> converted((torch.zeros(2, dtype=torch.float64), torch.ones(2, dtype=torch.int32)), torch.float32)
    (tensor([0., 0.]), tensor([1, 1]))
    """

    def change(part: Tensor) -> Tensor:
        if part.is_floating_point():
            return part if dtype is None else part.to(dtype)
        if part.dtype == torch.bool or part.is_complex() or (part.dtype == torch.uint8 and part.ndim > 1):
            return part
        return part.long()

    return map_tensors(batch, change)


def dtype_of(model: nn.Module) -> torch.dtype | None:
    """The type that all floating parameters of a model have, if there is one.

    >>> dtype_of(nn.Linear(2, 1).double())
    torch.float64
    """
    kinds = {parameter.dtype for parameter in model.parameters() if parameter.is_floating_point()}
    return kinds.pop() if len(kinds) == 1 else None


@dataclass(frozen=True, eq=False)
class Converted:
    """A store whose examples are given in a model's types, each by itself."""

    store: Store
    dtype: torch.dtype | None

    def __len__(self) -> int:
        return len(self.store)

    @property
    def at_once(self) -> int:
        """As many as the store itself would give."""
        return self.store.at_once

    def take(self, index: NDArray[np.int64]) -> Batch:
        """The examples of these numbers."""
        return converted(self.store.take(index), self.dtype)
