"""What a function makes of rows: each by itself, or it is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from reticent.errors import ModelError
from reticent.inside.each_row import each_row

ROWS = torch.rand(40, 3, generator=torch.Generator().manual_seed(0)) + 1.0


@pytest.mark.parametrize(
    "mixing", [lambda x: x - x.mean(0), lambda x: x * len(x), torch.sum], ids=["mean", "number", "sum"]
)
def test_what_mixes_rows_is_refused(mixing: Callable[[Tensor], Tensor]) -> None:
    with pytest.raises(ModelError, match="must treat each row by itself"):
        each_row(mixing, ROWS)


def test_a_record_that_is_no_number_does_not_hide_the_mixing() -> None:
    bad = torch.cat([ROWS, torch.full((1, 3), torch.nan)])
    with pytest.raises(ModelError, match="must treat each row by itself"):
        each_row(lambda x: x - x.mean(0), bad)
    infinite = torch.cat([torch.full((1, 3), torch.inf), bad])
    assert torch.equal(each_row(torch.neg, infinite).nan_to_num(7.0), (-infinite).nan_to_num(7.0))


def test_what_is_changed_in_place_before_it_fails_is_not_seen_again() -> None:
    def within(x: Tensor) -> Tensor:
        x.sub_(1.0)
        if float(x.min()) < 0:
            raise ValueError
        return x

    odd = torch.cat([ROWS, torch.zeros(1, 3)])
    found = each_row(within, odd.clone())
    assert torch.equal(found[:-1], ROWS - 1.0)
    assert found[-1].isnan().all()
