"""Examples as arrays that a model can be trained on: data frames and floats of other sizes are brought to its type."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from reticent.data.examples import Examples
from reticent.data.tables.frames import is_frame
from reticent.data.tables.schema import Schema
from reticent.errors import DataError

LOOKED_AT = 10_000
"""Rows in which missing numbers are looked for: enough to see a column of them, in arrays of any size."""
SHARE, ROWS = 0.01, 10
"""From which share and number of rows on a column is told of: a few records by themselves never are."""


def as_arrays(examples: Any, *, like: nn.Module) -> Any:
    """The same examples with data frames as tensors and floats in the model's own type; anything else as it is.

    >>> x, y = as_arrays((np.zeros((2, 3)), np.array([0, 1])), like=nn.Linear(3, 2))
    >>> x.dtype
    torch.float32
    """
    if is_frame(examples) and not isinstance(examples, Mapping):
        raise DataError(
            "a data frame alone does not say which column is the label, nor what the others may hold: give "
            "data.table(frame, schema), or a pair (frame of numbers, labels)"
        )
    if isinstance(examples, Examples):
        if isinstance(examples.preprocessing, Schema) and examples.preprocessing.noisy:
            raise DataError(
                'fill = "noisy" is for `reticent train`, which releases it (fill_noise): declare a public fill'
            )
        warn_of_missing(examples.x)
    records = isinstance(examples, list) and bool(examples) and isinstance(examples[0], tuple | dict)
    if records or not isinstance(examples, tuple | list):
        return examples
    columns = tuple(as_array(column, like=like) for column in examples)
    warn_of_missing(columns[0] if columns else None)
    return columns


def as_array(column: Any, *, like: nn.Module) -> Any:
    """A data frame or series of numbers as a tensor, floats of 64 bits in the model's own type; the rest as it is."""
    if is_frame(column) and not isinstance(column, Mapping):
        column = _numbers(column)
    elif type(column).__name__ == "Series":
        column = _numbers({str(getattr(column, "name", None) or "labels"): column})[:, 0]
    if isinstance(column, np.ndarray) and column.dtype.kind in "OUS":
        raise DataError(
            f"an array of the type {column.dtype} holds no numbers: convert it, or read a table by a schema"
        )
    if isinstance(column, np.ndarray) and column.dtype == np.float64 and not isinstance(column, np.memmap):
        column = torch.from_numpy(np.ascontiguousarray(column))
    if isinstance(column, Tensor) and column.dtype == torch.float64:
        return column.to(next((p.dtype for p in like.parameters() if p.is_floating_point()), torch.float32))
    return column


def _numbers(frame: Any) -> np.ndarray:
    """The columns of a data frame beside one another; a column of text is named in the error, not shown."""
    names = list(frame) if isinstance(frame, dict) else [str(name) for name in frame.columns]
    columns = []
    for name in names:
        try:
            values = np.asarray(frame[name])
            columns.append(values if values.dtype.kind in "iufb" else values.astype(np.float64))
        except (TypeError, ValueError):
            raise DataError(
                f"column {name!r} of the data frame holds no numbers: read the frame by a schema, "
                "data.table(frame, schema), or convert the column first"
            ) from None
    return np.stack(columns, axis=1)


def warn_of_missing(x: Any) -> None:
    """Warn of columns in which numbers are missing: an example with one counts for nothing in training."""
    if not isinstance(x, np.ndarray | Tensor) or not len(x):
        return
    some = x[:LOOKED_AT] if isinstance(x, Tensor) else torch.as_tensor(np.ascontiguousarray(x[:LOOKED_AT]))
    if not some.is_floating_point():
        return
    missing = torch.isnan(some.reshape(len(some), -1)).sum(0)
    places = torch.nonzero(missing >= max(ROWS, SHARE * len(some))).flatten().tolist()
    if places:
        named = ", ".join(str(place) for place in places[:10]) + (", ..." if len(places) > 10 else "")
        warnings.warn(
            f"input columns {named} have missing numbers (NaN), and an example with one counts for nothing: fill them "
            "first, for instance by a schema (docs/data.md). This warning tells of private data: keep it to yourself.",
            stacklevel=4,
        )
