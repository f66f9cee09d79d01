"""Data frames and series of numbers as arrays: a column of text is named in the error, its cells are never shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import DataError


def is_frame(value: object) -> bool:
    """Whether something is a data frame of pandas or polars, or a table of Arrow; `datasets` gives rows, not columns.

    >>> is_frame({"age": [3]}), is_frame(np.zeros((2, 2)))
    (False, False)
    """
    named = hasattr(value, "columns") or hasattr(value, "column_names")
    by_row = isinstance(value, Mapping) or hasattr(value, "__getitems__")
    return named and hasattr(value, "shape") and not by_row


def array_of(value: Any) -> NDArray[Any]:
    """The columns of a frame beside one another, or the numbers of a series."""
    if not is_frame(value):
        return _numbers(value, str(getattr(value, "name", None) or "labels"))
    names = getattr(value, "column_names", None) or list(value.columns)
    return np.stack([_numbers(value[name], str(name)) for name in names], axis=1)


def _numbers(column: Any, name: str) -> NDArray[Any]:
    try:
        values = np.asarray(column)
        return values if values.dtype.kind in "iufb" else values.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError(
            f"column {name!r} of the data frame holds no numbers: read the frame by a schema, "
            "data.table(frame, schema), or convert the column first"
        ) from None
