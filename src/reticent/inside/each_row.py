"""What a function makes of rows, where one that it fails for counts for nothing, and nobody hears of it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from reticent.errors import ModelError, ReticentError

CLOSE = 1e-2
"""So far apart, at most, is what is made of a row alone and among others: rounding, in half precision too."""


def each_row(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """The function's answer for each row; a row that it fails for is not a number.

    An error would tell that a bad record is among the examples, and may quote it.

    >>> each_row(lambda rows: 1 / rows if rows.min() > 0 else 1 // 0, torch.tensor([[2.0], [0.0]]))
    tensor([[0.5000],
            [   nan]])
    """
    try:
        together = function(x.clone())  # what is changed in place before it fails must not be seen again
    except ReticentError:
        raise
    except Exception:
        found = [_alone(function, row[None]) for row in x]
    else:
        _refuse_mixing(together, _alone(function, x[:1].clone()) if len(x) > 1 else together)
        return together
    known = next((one for one in found if one is not None), None)
    if known is None:
        raise ModelError("what comes before the released layer fails for every example: try it on a made-up one")
    return torch.cat([torch.full_like(known, torch.nan) if one is None else one for one in found])


def _refuse_mixing(together: Tensor, alone: Tensor | None) -> None:
    """Refuse a function that makes something else of the first row where others are there; nothing is told of it."""
    if alone is not None and alone.ndim and alone.shape[1:] == together.shape[1:]:
        first, one = together[:1].double(), alone.double()
        close = (first - one).abs() <= CLOSE * (1 + one.abs())
        if bool((close | (first == one) | (first.isnan() & one.isnan())).all()):
            return
    raise ModelError(
        "what comes before the released layer makes something else of a row where other rows are there: it must treat "
        "each row by itself. Nothing was released"
    )


def _alone(function: Callable[[Tensor], Tensor], row: Tensor) -> Tensor | None:
    try:
        return function(row)
    except ReticentError:
        raise
    except Exception:  # a bad record
        return None
