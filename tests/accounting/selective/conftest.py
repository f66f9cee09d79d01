"""Tests of candidates on a few cells of outcomes: what a search for worse ones runs through."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from reticent.accounting import (
    SelectiveAttempt,
)
from reticent.accounting.selective.corners import Corners, corners


class Searched:
    """One direction on cells of outcomes: masses under P and Q, and the chances a test may choose from."""

    def __init__(self, attempt: SelectiveAttempt, sign: int, cells: int = 32):
        noise, inner = attempt.noise_multiplier, np.linspace(-4, 4, cells - 1) * attempt.noise_multiplier + 0.5
        edges = np.array([-np.inf, *inner, np.inf])
        absent, moved = (np.diff(ndtr((edges - mean) / noise)) for mean in (0, 1))
        present = (1 - attempt.rate) * absent + attempt.rate * moved
        self.p, self.q = (present, absent) if sign == 1 else (absent, present)
        self.corner: Corners = corners(attempt)[0 if sign == 1 else 1]

    def policies(self, rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Intervals, random corners and mixtures of corners, one row a test: the chances under Q and under P."""
        cells, kinds = len(self.p), len(self.corner.before)
        edges = np.sort(rng.integers(0, cells + 1, (count, 3)), axis=1)
        place = (np.arange(cells)[None, :, None] >= edges[:, None, :]).sum(axis=2)
        names = rng.permuted(np.tile(np.arange(max(4, kinds)) % kinds, (count, 1)), axis=1)
        chosen = np.take_along_axis(names, place, axis=1)
        chosen[: count // 3] = rng.integers(0, kinds, (count // 3, cells))
        weights = np.eye(kinds)[chosen]
        weights[: count // 6] = rng.dirichlet(np.full(kinds, 0.3), (count // 6, cells))
        return weights @ self.corner.before, weights @ self.corner.after


@pytest.fixture
def searched() -> type[Searched]:
    return Searched
