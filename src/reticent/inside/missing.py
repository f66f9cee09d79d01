"""Missing numbers: a column that is full of them is told of before training, never a record by itself."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from reticent.inside.columns import Columns
from reticent.inside.persons import Persons
from reticent.inside.store import Store

SHARE, ROWS = 0.01, 10
"""From which share and number of rows on a column is told of: a few records by themselves never are."""


def warn_of_missing(examples: Store, filled: Sequence[int] = ()) -> None:
    """Warn of columns in which numbers are missing and nothing fills them: such an example counts for nothing."""
    rows = examples.rows if isinstance(examples, Persons) else examples
    if not isinstance(rows, Columns):
        return  # to read other kinds takes as long as a round
    some = rows.take(np.arange(min(len(rows), rows.at_once)))
    x = some[0] if isinstance(some, tuple) else some
    if not isinstance(x, Tensor) or x.ndim < 2:
        return
    missing = torch.isnan(x.reshape(len(x), -1)).sum(0)
    missing[list(filled)] = 0
    places = torch.nonzero(missing >= max(ROWS, SHARE * len(x))).flatten().tolist()
    if places:
        named = ", ".join(str(place) for place in places[:10]) + (", ..." if len(places) > 10 else "")
        warnings.warn(
            f"input columns {named} have missing numbers (NaN), and an example with one counts for nothing: fill them "
            "first, for instance by a schema (docs/data.md). This warning tells of private data: keep it to yourself.",
            stacklevel=4,
        )
