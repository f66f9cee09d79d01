"""From Renyi curves to epsilon and delta, there and back."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.accounting import (
    Gaussian,
    Subsampled,
    curve,
)
from reticent.accounting.renyi.conversions import to_delta, to_epsilon

PAPER = np.arange(2, 65, dtype=float)


def test_conversions_are_inverse() -> None:
    rdp = 100 * curve(Subsampled(0.05, Gaussian(1.0)), PAPER)
    for delta in (1e-3, 1e-5, 1e-9):
        found, _ = to_epsilon(PAPER, rdp, delta)
        assert to_delta(PAPER, rdp, found) == pytest.approx(delta, rel=1e-9)
    old, new = (to_epsilon(PAPER, rdp, 1e-5, name)[0] for name in ("old", "new"))
    assert new < old
