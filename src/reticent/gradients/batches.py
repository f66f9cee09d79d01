"""Batches: a tensor, or nested tuples, lists and dicts of tensors whose first axis is the example."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from torch import Tensor, nn

Batch: TypeAlias = Any
PerExampleLoss: TypeAlias = Callable[[nn.Module, Batch], Tensor]


def map_tensors(batch: Batch, change: Callable[[Tensor], Tensor]) -> Batch:
    """Apply `change` to every tensor of a batch and keep its shape of tuples, lists and dicts.

    >>> import torch
    >>> map_tensors({"x": torch.ones(2), "more": (torch.ones(2), None)}, lambda t: t + 1)
    {'x': tensor([2., 2.]), 'more': (tensor([2., 2.]), None)}
    """
    if isinstance(batch, Tensor):
        return change(batch)
    if isinstance(batch, Mapping):
        return type(batch)({key: map_tensors(value, change) for key, value in batch.items()})  # type: ignore[call-arg]
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(map_tensors(value, change) for value in batch))
    if isinstance(batch, tuple | list):
        return type(batch)(map_tensors(value, change) for value in batch)
    return batch


def tensors(batch: Batch) -> Iterator[Tensor]:
    """Yield every tensor of a batch."""
    if isinstance(batch, Tensor):
        yield batch
    elif isinstance(batch, Mapping):
        for value in batch.values():
            yield from tensors(value)
    elif isinstance(batch, tuple | list):
        for value in batch:
            yield from tensors(value)


def size(batch: Batch) -> int:
    """Count the examples of a batch.

    >>> import torch
    >>> size((torch.ones(3, 2), torch.ones(3)))
    3
    """
    lengths = {tensor.shape[0] if tensor.ndim else -1 for tensor in tensors(batch)}
    if len(lengths) != 1 or -1 in lengths:
        shapes = [tuple(tensor.shape) for tensor in tensors(batch)]
        raise ValueError(f"every tensor of a batch needs the examples on its first axis, but the shapes are {shapes}")
    return lengths.pop()


def rows(batch: Batch, start: int, stop: int) -> Batch:
    """Take the examples from `start` up to `stop`, as views.

    >>> import torch
    >>> rows(torch.arange(5), 1, 3)
    tensor([1, 2])
    """
    return map_tensors(batch, lambda tensor: tensor[start:stop])


def chosen(batch: Batch, index: Tensor) -> Batch:
    """Take the examples an index or a mask picks."""
    return map_tensors(batch, lambda tensor: tensor[index.to(tensor.device)])


def chunks(batch: Batch, n: int, limit: int) -> Iterator[Batch]:
    """Cut a batch of n examples into equal parts of at most `limit`, in order.

    >>> import torch
    >>> [size(part) for part in chunks(torch.ones(10), 10, 4)]
    [4, 3, 3]
    """
    if n <= limit:
        yield batch
        return
    parts = -(-n // limit)
    edges = [-(-n * i // parts) for i in range(parts + 1)]
    for start, stop in itertools.pairwise(edges):
        yield rows(batch, start, stop)
