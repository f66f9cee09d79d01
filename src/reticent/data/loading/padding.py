"""Padding: records of many lengths, each brought by itself to one length that is public."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.data import Dataset, default_collate

from reticent.errors import DataError, require
from reticent.inside.store import Batch, Mapped, nothing_like, with_arrays

Collate = Callable[[list[Any]], Batch]
"""Records -> a batch of them, as a DataLoader has it."""

Length = int | Mapping[str, int | tuple[int, ...]]
"""How long sequences are made: all of whole numbers alike, or each field by its name, or by its whole shape."""


class Padded(Mapped):
    """Examples of a map-style dataset whose sequences are padded, or cut, to a declared length.

    A batch padded to its longest record would have a shape that tells that record's length, and a rounding that
    depends on it. So every record is collated alone and padded to the same length, whoever is drawn with it.
    """

    def __init__(
        self,
        dataset: Dataset[object],
        length: Length,
        collate: Collate | None,
        pad: Mapping[str, float],
    ):
        for most in length.values() if isinstance(length, Mapping) else (length,):
            for one in most if isinstance(most, tuple) else (most,):
                require(one >= 1, f"the length that records are padded to must be 1 or more, not {most}")
        self._length, self._collate, self._pad = length, collate or _collated, dict(pad)
        super().__init__(dataset)
        self._refuse_unpadded()

    def as_store(self) -> Padded:
        """Itself."""
        return self

    def _row(self, record: object) -> Batch | None:
        row = self._collate([record])
        if isinstance(row, Mapping):
            return {name: self._brought(str(name), part) for name, part in row.items()}
        parts = row if isinstance(row, tuple | list) else (row,)
        return tuple(self._brought(str(place), part) for place, part in enumerate(parts))

    def _brought(self, name: str, part: object) -> object:
        """A field in the length that was declared; by default, whole numbers on two axes or more are sequences."""
        if not isinstance(part, Tensor):
            return part
        if isinstance(self._length, Mapping):
            most = self._length.get(name)
        else:
            most = None if part.ndim < 2 or part.is_floating_point() else self._length
        if most is None:
            return part
        shape = most if isinstance(most, tuple) else (*part.shape[1:-1], most)
        if len(shape) != part.ndim - 1:
            raise DataError(f"the shape {shape} is not that of a record, which has {part.ndim - 1} axes")
        cut = part[(slice(None), *(slice(end) for end in shape))]
        missing = [end - now for end, now in zip(shape, cut.shape[1:], strict=True)]
        sides = [side for one in reversed(missing) for side in (0, one)]  # torch begins with the last axis
        return functional.pad(cut, sides, value=self._pad.get(name, 0))

    def _refuse_unpadded(self) -> None:
        """Refuse lengths that are for nothing, by the form alone: records would stay of many lengths."""
        row = self._form
        pairs = row.items() if isinstance(row, Mapping) else enumerate(row)
        fields = {str(name): part for name, part in pairs if isinstance(part, Tensor)}
        if isinstance(self._length, Mapping):
            strange = sorted(self._length.keys() - fields.keys())
            require(not strange, f"no field is called {strange[:1]}: there are {', '.join(fields)}")
            loose = [name for name, most in self._length.items() if isinstance(most, int) and _vectors(fields[name])]
        else:
            whole = any(part.ndim > 1 and not part.is_floating_point() for part in fields.values())
            loose = [] if whole else [name for name, part in fields.items() if _vectors(part) or part.ndim == 2]
        for name in loose:
            said = self._length[name] if isinstance(self._length, Mapping) else self._length
            shape = f"({said}, width)" if _vectors(fields[name]) else said
            raise DataError(
                f"a length by itself is for whole numbers, and field {name!r} holds others: write "
                f'rt.data.padded(examples, {{"{name}": {shape}}})'
                + (", the whole shape of a record" if _vectors(fields[name]) else "")
            )

    def _nothing(self) -> Batch:
        """Nothing is learned of it where its targets can say so."""
        row = nothing_like(self._form)
        for name in ("labels", "label") if isinstance(row, dict) else ():
            if name in row and not row[name].is_floating_point():
                row[name] = torch.full_like(row[name], -100)
        return row


def _collated(records: list[Any]) -> Batch:
    return default_collate([with_arrays(record) for record in records])


def _vectors(part: Tensor) -> bool:
    """Whether a record is a sequence of vectors: either axis might be its length."""
    return part.is_floating_point() and part.ndim == 3


def padded(
    dataset: Any,
    length: Length,
    *,
    collate_fn: Collate | None = None,
    pad: Mapping[str, float] | None = None,
) -> Padded:
    """Examples of different lengths, padded to a public one; what is longer is cut.

    `length` is for every field of whole numbers that is a sequence, or says it by the field's name (its place, in a
    tuple: {"0": 64}). A sequence of vectors has its whole shape said: {"0": (64, 3)}. `collate_fn` is what a DataLoader
    would be given, and sees one record at a time; `pad` says by what a field is padded, if not by 0.

    >>> texts = [{"ids": [3, 5, 9], "label": 1}, {"ids": [4], "label": 0}]
    >>> padded(texts, 2).take(torch.tensor([0, 1]).numpy())["ids"]
    tensor([[3, 5],
            [4, 0]])
    >>> walks = [(torch.ones(3, 2), 1), (torch.ones(1, 2), 0)]
    >>> padded(walks, {"0": (2, 2)}).take(torch.tensor([1]).numpy())[0]
    tensor([[[1., 1.],
             [0., 0.]]])
    """
    if not (hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")):
        raise DataError(
            f"cannot pad examples of a {type(dataset).__name__}: give a list of records or a map-style Dataset; of a "
            "DataLoader give its dataset, and its collate_fn"
        )
    return Padded(dataset, length, collate_fn, pad or {})
