"""The ranking of exposed records."""

from __future__ import annotations

import numpy as np

from reticent.attacks.ranking import exposure, most_exposed
from reticent.attacks.signals import balanced_design


def test_the_planted_outliers_come_first(rng: np.random.Generator) -> None:
    keep = balanced_design(16, 300, seed=0)
    strength = np.where(np.arange(300) < 5, 6.0, 0.2)
    matrix = rng.normal(size=keep.shape) + keep * strength
    assert {found.record for found in most_exposed(matrix, keep, 5)} == set(range(5))
    np.testing.assert_allclose(exposure(matrix, keep)[:5], 6, atol=2.5)


def test_a_record_that_is_always_in_or_always_out_is_not_ranked(rng: np.random.Generator) -> None:
    keep = np.array([[True, True, False], [True, False, False]])
    assert exposure(rng.normal(size=keep.shape), keep)[[0, 2]].tolist() == [0.0, 0.0]
