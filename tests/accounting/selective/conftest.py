"""Pairs with their outcomes merged into cells, and tests on them: what a search for worse tests runs through."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtr

from reticent.accounting import (
    SelectiveAttempt,
)
from reticent.accounting.selective.corners import Corners, corners
from reticent.accounting.selective.moments import PairMoments
from reticent.accounting.selective.problem import Problem


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


class Cells:
    """The pair of an attempt with its outcomes merged into a few cells: the same problem, with sums for integrals."""

    def __init__(self, attempt: SelectiveAttempt, order: float, sign: int, inner: tuple[float, ...]):
        edges = np.array([-math.inf, *inner, math.inf]) * attempt.noise_multiplier
        absent, moved = (np.diff(ndtr((edges - mean) / attempt.noise_multiplier)) for mean in (0, 1))
        present = (1 - attempt.rate) * absent + attempt.rate * moved
        self.order = order
        self.p, self.q = (present, absent) if sign == 1 else (absent, present)
        self.corner = corners(attempt)[0 if sign == 1 else 1]
        remainder = self.q * ((self.p / self.q) ** order - 1 - order * (self.p / self.q - 1))
        self.problem = Problem(attempt, self.corner, PairMoments(order, 0.0, remainder, self.q, self.p - self.q))

    def every_test(self) -> np.ndarray:
        """Each row a test: the corner it takes in each cell, as weights of the corners."""
        kinds = len(self.corner.before)
        return np.eye(kinds)[np.array(list(itertools.product(range(kinds), repeat=len(self.p))))]

    def random_tests(self, count: int) -> np.ndarray:
        """Tests with any chances inside the polygon, often near a corner."""
        kinds = len(self.corner.before)
        return np.random.default_rng(4).dirichlet(np.full(kinds, 0.2), (count, len(self.p)))

    def moments(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A, B and C of the theorems, for each row."""
        a, after = weights @ self.corner.before, weights @ self.corner.after
        kept = self.p**self.order * self.q ** (1 - self.order) * after**self.order * a ** (1 - self.order)
        return kept.sum(axis=1), a @ self.q, after @ self.p

    def seen(self, weights: np.ndarray) -> np.ndarray:
        """exp((order-1) D) - 1 of an attempt whose rejection is seen."""
        a, b, c = self.moments(weights)
        return a + (1 - c) ** self.order * (1 - b) ** (1 - self.order) - 1

    def hidden(self, weights: np.ndarray) -> np.ndarray:
        """exp((order-1) D) - 1 of an accepted update."""
        return self._released(np.array(self.moments(weights)))

    def hidden_mixed(self, weights: np.ndarray) -> float:
        """The largest if two tests may also take turns by a coin that is seen: all pairs of them, all coins."""
        a = np.array(self.moments(weights))
        coins = np.linspace(0, 1, 41)[:, None]
        return max(self._released(one * coins + a[:, None, :] * (1 - coins)).max() for one in a.T[:, :, None, None])

    def _released(self, moments: np.ndarray) -> np.ndarray:
        a, b, c = moments
        return a * b ** (self.order - 1) / c**self.order - 1


@pytest.fixture
def searched() -> type[Searched]:
    return Searched


@pytest.fixture
def in_cells() -> type[Cells]:
    return Cells


ATTEMPTS = [
    SelectiveAttempt(0.2, 1.0, 0.05, 0.2, 0.6),
    SelectiveAttempt(1.0, 2.0, 0.5, 0.1, 0.9),
    SelectiveAttempt(0.5, 1.0, 1.0, 0.3, 0.5),
    SelectiveAttempt(0.3, 1.5, 0.0, 0.05, 0.95),
    SelectiveAttempt(0.2, 1.0, 0.7, 0.1, 0.8, 0.4),
]


@pytest.fixture(params=ATTEMPTS, ids=range(len(ATTEMPTS)))
def attempt(request: pytest.FixtureRequest) -> SelectiveAttempt:
    return request.param
