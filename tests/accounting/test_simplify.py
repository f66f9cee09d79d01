"""The same releases in fewer words."""

from __future__ import annotations

import math

from reticent.accounting import (
    Composed,
    Gaussian,
    NoisyMax,
    Subsampled,
)
from reticent.accounting.simplify import simplify, tally


def test_nested_draws_are_one_draw() -> None:
    inner = Composed((Gaussian(2.0), Gaussian(2.0)))
    assert simplify(Subsampled(0.5, Subsampled(0.2, inner))) == Subsampled(0.1, Gaussian(math.sqrt(2)))
    assert simplify(Subsampled(1.0, Gaussian(2.0))) == Gaussian(2.0)
    assert tally([Subsampled(0.0, Gaussian(0.0))]) == {}
    amplified = simplify(Subsampled(0.1, NoisyMax(1.0)))
    assert amplified == NoisyMax(math.log1p(0.1 * math.expm1(1.0)))
