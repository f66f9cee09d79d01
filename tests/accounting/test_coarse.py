"""Fewer distinct events, never cheaper."""

from __future__ import annotations

import numpy as np

from reticent.accounting import (
    Gaussian,
    Subsampled,
)
from reticent.accounting.coarse import coarsen
from reticent.accounting.pricing import total_curve

PAPER = np.arange(2, 65, dtype=float)


def test_rounding_many_noises_down_never_lowers_the_price() -> None:
    many = {Subsampled(0.01 + i * 1e-6, Gaussian(2.0 - i / 1000)): 1 for i in range(900)}
    few = coarsen(many, 32)
    assert len(few) < 70
    assert sum(few.values()) == 900
    exact, rounded = (total_curve(events, PAPER) for events in (many, few))
    assert (rounded >= exact).all()
    assert (rounded[:4] <= 1.05 * exact[:4]).all()
