"""Whose each row is, as the user's own files say it: names or numbers, of which only the persons matter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from reticent.data.tables.encoding import is_missing, text_of
from reticent.errors import DataError


def persons_in(cells: Sequence[object] | np.ndarray | None, name: str, origin: str) -> Tensor:
    """The persons of a column, numbered as they come.

    >>> persons_in(["bo", "ann", "bo"], "patient", "visits.csv")
    tensor([0, 1, 0])
    """
    if cells is None:
        raise DataError(f"{origin} has no {name!r} that says whose each row is: groups must name what is there")
    known: dict[str, int] = {}
    found = []
    for cell in cells.tolist() if isinstance(cells, np.ndarray) else cells:
        if is_missing(cell):
            raise DataError(
                f"{origin}: {name!r} does not say of every row whose it is: leave such rows out, or name them"
            )
        found.append(known.setdefault(text_of(cell), len(known)))
    return torch.tensor(found, dtype=torch.int64)
