"""Columns: examples as arrays of equal length, in a tuple or by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from reticent.errors import DataError
from reticent.inside.frames import array_of, is_frame

# Bounds of what is fetched at a time, however large a draw is. Larger blocks than this would take fresh pages from the
# system each time, which costs several times what copying the examples does.
MOST_BYTES, MOST_EXAMPLES = 2**24, 8192

Column: TypeAlias = "NDArray[Any] | Tensor"
Tree: TypeAlias = "Column | tuple[Tree, ...] | dict[str, Tree]"
Taken: TypeAlias = "Tensor | tuple[Taken, ...] | dict[str, Taken]"


class Columns:
    """Examples as arrays of equal length, such as (x, y) or {"x": x, "y": y}; memory-mapped ones stay on disk.

    >>> rows = Columns({"words": [[1, 2], [3, 4]], "label": np.array([0, 1], np.int32)})
    >>> len(rows), rows.take(np.array([1]))["words"]
    (2, tensor([[3, 4]]))
    """

    def __init__(self, columns: Sequence[Any] | Mapping[str, Any]):
        self._tree = _read(columns if isinstance(columns, Mapping) else tuple(columns), "", top=True)
        self._columns = list(_leaves(self._tree))
        sizes = {len(column) for column in self._columns}
        if len(sizes) > 1:
            raise DataError(f"the columns have different lengths: {sorted(sizes)}; give one entry to each example")

    def __len__(self) -> int:
        return len(self._columns[0]) if self._columns else 0

    @property
    def at_once(self) -> int:
        """As many as fit."""
        each = sum(column.nbytes // max(len(column), 1) for column in self._columns)
        return max(1, min(MOST_BYTES // max(each, 1), MOST_EXAMPLES))

    def take(self, index: NDArray[np.int64]) -> Taken:
        """The rows of these numbers from every column."""
        numbers = torch.from_numpy(index)

        def rows(column: Column) -> Tensor:
            if isinstance(column, np.ndarray):
                return torch.from_numpy(np.ascontiguousarray(column[index]))
            return column[numbers]

        return _mapped(self._tree, rows)


def _read(value: Any, name: str, *, top: bool = False) -> Tree:
    """Arrays, in tuples and dicts of them; a tuple of plain numbers is an array."""
    if isinstance(value, Mapping):
        return {key: _read(part, f"{name}{key!r}") for key, part in value.items()}
    if isinstance(value, tuple) and (top or any(hasattr(part, "shape") for part in value)):
        return tuple(_read(part, f"{name}{place}") for place, part in enumerate(value))
    return _column(value, name)


def _column(value: Any, name: str) -> Column:
    if hasattr(value, "to_numpy") or is_frame(value):  # of pandas, polars and Arrow
        value = array_of(value)
    try:
        column: Column = value if isinstance(value, np.ndarray) else torch.as_tensor(value)
        if isinstance(column, np.ndarray):
            torch.from_numpy(np.empty(0, column.dtype))
    except (TypeError, ValueError, RuntimeError) as error:
        kind = getattr(value, "dtype", type(value).__name__)
        raise DataError(
            f"column {name} cannot be read as numbers ({kind}): give a tensor or an array; turn text and categories "
            "into numbers, fill in what is missing, and give one shape to every example"
        ) from error
    if column.ndim == 0:
        raise DataError(f"column {name} is a single number: give one entry to each example")
    return column


def _leaves(tree: Tree) -> Iterator[Column]:
    if isinstance(tree, tuple | dict):
        for part in tree.values() if isinstance(tree, dict) else tree:
            yield from _leaves(part)
    else:
        yield tree


def _mapped(tree: Tree, change: Callable[[Column], Tensor]) -> Taken:
    if isinstance(tree, dict):
        return {name: _mapped(part, change) for name, part in tree.items()}
    if isinstance(tree, tuple):
        return tuple(_mapped(part, change) for part in tree)
    return change(tree)
