"""What a function makes of rows, where one that it fails for counts for nothing, and nobody hears of it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from reticent.errors import ModelError, ReticentError


def each_row(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """The function's answer for each row; a row that it fails for is not a number.

    An error would tell that a bad record is among the examples, and may quote it.

    >>> each_row(lambda rows: 1 / rows if rows.min() > 0 else 1 // 0, torch.tensor([[2.0], [0.0]]))
    tensor([[0.5000],
            [   nan]])
    """
    try:
        return function(x.clone())  # what is changed in place before it fails must not be seen again
    except ReticentError:
        raise
    except Exception:
        found = [_alone(function, row[None]) for row in x]
    known = next((one for one in found if one is not None), None)
    if known is None:
        raise ModelError("what comes before the released layer fails for every example: try it on a made-up one")
    return torch.cat([torch.full_like(known, torch.nan) if one is None else one for one in found])


def _alone(function: Callable[[Tensor], Tensor], row: Tensor) -> Tensor | None:
    try:
        return function(row)
    except ReticentError:
        raise
    except Exception:  # a bad record
        return None
