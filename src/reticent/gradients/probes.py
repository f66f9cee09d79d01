"""Rows to try a model on before it meets private examples: made up, or public ones that its user gives."""

from __future__ import annotations

import weakref
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from reticent.gradients.batches import Batch, chosen, map_tensors, size
from reticent.gradients.grouped import alike

_public: weakref.WeakKeyDictionary[nn.Module, Batch] = weakref.WeakKeyDictionary()


def remember(model: nn.Module, public: Batch) -> None:
    """Keep public rows for a model that cannot run on made-up ones."""
    _public[model] = public


def made_up(batch: Batch, rows: int, *, ones: bool = False) -> Batch:
    """Rows of the same shapes and types, of which nothing comes from the batch itself.

    >>> made_up((torch.full((5, 2), 7.0), torch.full((5,), 7)), 3, ones=True)[1]
    tensor([1, 1, 1])
    """
    rng = torch.Generator().manual_seed(0)

    def make(part: Tensor) -> Tensor:
        shape = (rows, *part.shape[1:])
        if part.is_floating_point():
            made = torch.rand(shape, generator=rng)
        else:
            made = torch.ones(shape) if ones else torch.randint(0, 2, shape, generator=rng)
        return made.to(part.device, part.dtype)

    return map_tensors(batch, make)


def probes(model: nn.Module, batch: Batch, rows: int) -> Iterator[Batch]:
    """Rows to try, one kind after another: what is public, whole numbers of 0 and 1, and all 1, as lengths must be."""
    if model in _public:
        public = alike(_public[model], chosen(batch, torch.arange(rows) % size(batch)))
        yield chosen(public, torch.arange(rows) % size(public))
    yield made_up(batch, rows)
    yield made_up(batch, rows, ones=True)
