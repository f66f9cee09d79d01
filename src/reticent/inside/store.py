"""Store: examples of any kind, fetched by index."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset, default_collate

from reticent.errors import DataError
from reticent.gradients.batches import map_tensors, tensors
from reticent.inside.columns import MOST_EXAMPLES, Columns
from reticent.inside.frames import is_frame

Batch = Any
"""What a model is given: a tensor, or a tuple, list or dict of tensors whose first axis is the example."""


Device = torch.device | str


class Store(Protocol):
    """Examples that can be counted and drawn."""

    def __len__(self) -> int: ...

    @property
    def at_once(self) -> int:
        """How many examples to take at a time."""
        ...

    def take(self, index: NDArray[np.int64]) -> Batch:
        """The examples of these numbers as one batch."""
        ...


@runtime_checkable
class Tabular(Protocol):
    """Examples that say themselves which arrays they are; anything else is read row by row."""

    def as_columns(self) -> Sequence[Any]:
        """The arrays, of one length."""
        ...


@runtime_checkable
class Storable(Protocol):
    """Examples that are their own store, or make it."""

    def as_store(self) -> Store:
        """The store."""
        ...


class Mapped:
    """Examples of a map-style `torch.utils.data.Dataset`, read through `__getitem__` (or `__getitems__`) alone.

    Every record is brought to the form of the first readable one by itself, before it meets any other: put together
    first, one record of another type or shape would change all that are drawn with it. One that cannot be read or has
    another form is a row that counts for nothing. So the form is public: every guarantee says that it is assumed to be.
    """

    def __init__(self, dataset: Dataset[object]):
        self._dataset = dataset
        rows = (self._alone(number) for number in range(len(self)))
        self._form: Batch = next((row for row in rows if row is not None), None)
        if len(self) and self._form is None:
            raise DataError("no example of the dataset can be read: look at what its __getitem__ gives, and raises")
        _refuse_text(self._form)

    def __len__(self) -> int:
        return len(self._dataset)  # type: ignore[arg-type]

    @property
    def at_once(self) -> int:
        """Nothing is known of their size."""
        return MOST_EXAMPLES

    @property
    def form(self) -> Batch:
        """The first readable record, as a batch of one row: its shapes and types are those of all."""
        return self._form

    def take(self, index: NDArray[np.int64]) -> Batch:
        """The examples of these numbers."""
        numbers = index.tolist()
        rows = [None if row is None else fitted(row, self._form) for row in self._rows(numbers)]
        return joined([self._nothing() if row is None else row for row in rows], self._form)

    def odd(self) -> int:
        """How many count for nothing because they cannot be read or have another form: private."""
        rows = (self._alone(number) for number in range(len(self)))
        return sum(row is None or fitted(row, self._form) is None for row in rows)

    def _rows(self, numbers: list[int]) -> list[Batch | None]:
        many = getattr(self._dataset, "__getitems__", None)
        if many is None:
            return [self._alone(number) for number in numbers]
        try:
            return [self._row(record) for record in many(numbers)]
        except Exception:  # one of them cannot be read
            return [self._alone(number) for number in numbers]

    def _alone(self, number: int) -> Batch | None:
        try:
            many = getattr(self._dataset, "__getitems__", None)
            return self._row(many([number])[0] if many is not None else self._dataset[number])
        except Exception:  # nobody hears of it: an error would tell that this record is there
            return None

    def _row(self, record: object) -> Batch | None:
        """A record as a batch of one row; None for what cannot be one."""
        return _collated(record)

    def _nothing(self) -> Batch:
        """A row that counts for nothing."""
        return nothing_like(self._form)


def _collated(record: object) -> Batch | None:
    """A record as a batch of one row, as a DataLoader would make it; None for what cannot be one."""
    try:
        return default_collate([with_arrays(record)])
    except Exception:
        return None


def with_arrays(record: object) -> object:
    """A record whose lists of numbers are arrays, as tokenised text has them: a loader would take each for a field."""
    if isinstance(record, Mapping):
        return {name: _array_of(part) for name, part in record.items()}
    return tuple(map(_array_of, record)) if type(record) is tuple else record


def _array_of(part: object) -> object:
    if not isinstance(part, list) or not part or isinstance(part[0], str | Tensor):
        return part
    try:
        return torch.as_tensor(part)
    except (TypeError, ValueError, RuntimeError):
        return part


def fitted(row: Batch, form: Batch) -> Batch | None:
    """The row with the types of the form; None if its structure or a shape is another."""
    if _structure(row) != _structure(form):
        return None
    types = iter([part.dtype for part in tensors(form)])
    return map_tensors(row, lambda part: part.to(next(types)))


def _structure(batch: Batch) -> object:
    """Containers, keys and shapes of a batch, without its values."""
    if isinstance(batch, Tensor):
        return tuple(batch.shape)
    if isinstance(batch, dict):
        return {name: _structure(part) for name, part in batch.items()}
    if isinstance(batch, tuple | list):
        return [type(batch).__name__, *map(_structure, batch)]
    return type(batch).__name__


def nothing_like(form: Batch) -> Batch:
    """A row of this form that is not a number, or zero where there is no such thing."""

    def fill(part: Tensor) -> Tensor:
        return torch.full_like(part, math.nan) if part.is_floating_point() else torch.zeros_like(part)

    return map_tensors(form, fill)


def joined(rows: list[Batch], form: Batch) -> Batch:
    """Rows of one form as one batch; for none, a batch of length zero."""
    if not rows:
        return map_tensors(form, lambda part: part[:0])
    columns = iter([torch.cat(column) for column in zip(*(tensors(row) for row in rows), strict=True)])
    return map_tensors(form, lambda _part: next(columns))


def _refuse_text(batch: Batch) -> None:
    """Text cannot be cut into rows with the tensors beside it: it would be paired with other examples."""
    if isinstance(batch, str | bytes):
        raise DataError("a field of the examples is text: turn it into numbers first, such as the ids of its words")
    if isinstance(batch, dict):
        batch = list(batch.values())
    if isinstance(batch, tuple | list):
        for part in batch:
            _refuse_text(part)


def leaves(batch: Batch) -> list[Tensor]:
    """Every tensor of the batch."""
    return list(tensors(batch))


def examples_in(batch: Batch) -> int:
    """How many examples a batch has.

    >>> examples_in({"words": torch.zeros(3, 5), "label": torch.zeros(3)})
    3
    """
    return len(leaves(batch)[0])


def as_bytes(value: Tensor) -> memoryview:
    """A tensor's memory, for fingerprints."""
    return value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data


def moved(batch: Batch, device: Device) -> Batch:
    """The batch on a device."""
    return map_tensors(batch, lambda part: part.to(device))


def blank(batch: Batch, rows: int) -> Batch:
    """A made-up batch of the same shapes and types: models are probed with it, never with real examples."""
    rng = torch.Generator().manual_seed(0)

    def make(part: Tensor) -> Tensor:
        shape = (rows, *part.shape[1:])
        if part.dtype.is_floating_point:
            return torch.rand(shape, generator=rng, dtype=part.dtype)
        return torch.randint(0, 2, shape, generator=rng).to(part.dtype)

    return map_tensors(batch, make)


def as_store(examples: Any) -> Store:
    """A store for arrays or tensors, alone, in a tuple or in a dict, for a list of records, or a map-style dataset.

    >>> xs = as_store((np.zeros((5, 2), np.float32), np.arange(5)))
    >>> len(xs), xs.take(np.array([1, 3]))[1]
    (5, tensor([1, 3]))
    >>> as_store({"x": torch.zeros(5, 2), "labels": torch.arange(5)}).take(np.array([4]))["labels"]
    tensor([4])
    """
    found: Store
    if is_frame(examples) and not isinstance(examples, Storable):
        raise DataError(
            "a data frame alone does not say which column is the label, nor what the others may hold: give "
            "data.table(frame, schema), or a pair (frame of numbers, labels)"
        )
    if isinstance(examples, Storable):
        found = examples.as_store()
    elif isinstance(examples, np.ndarray | Tensor):
        found = Columns([examples])
    elif isinstance(examples, list) and examples and isinstance(examples[0], tuple | dict):
        found = Mapped(cast("Dataset[object]", examples))
    elif isinstance(examples, tuple | list | Mapping):
        found = Columns(examples)
    elif isinstance(examples, Tabular):
        found = Columns(examples.as_columns())
    elif hasattr(examples, "__getitem__") and hasattr(examples, "__len__"):
        found = Mapped(examples)
    else:
        raise DataError(
            f"cannot read examples from {type(examples).__name__}: give a tuple such as (x, y) of tensors or arrays, "
            "or a map-style Dataset (with __len__ and __getitem__); a DataLoader or an iterable will not do, because "
            "the private draw must be able to pick any example. Of a DataLoader give loader.dataset; where its "
            "collate_fn pads, rt.data.padded(loader.dataset, LENGTH, collate_fn=loader.collate_fn)"
        )
    if len(found) == 0:
        raise DataError("there are no examples: the dataset is empty")
    return found
