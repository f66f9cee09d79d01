"""Buffered columns (BLT): c_0 = 1, c_t = sum of w_j d_j^(t-1), by a few buffers that decay (Dvijotham et al. 2024).

Weights are above 0 and add up to less than 1, decays are between 0 and 1: so the column falls and is never negative,
which is what the sensitivity of an example that takes part several times is proved for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from reticent.accounting.matrices.toeplitz import Array, mean_square, sensitivity, workload
from reticent.errors import require

DIGITS = 6
"""What is found is rounded to so many, so that it is the same wherever it is found."""

MOST = 4
"""The most buffers: two leave next to nothing to gain where examples take part several times, four where once."""


@dataclass(frozen=True)
class Buffered:
    """A column by its buffers."""

    decays: tuple[float, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        require(len(self.decays) == len(self.weights), "every buffer has a decay and a weight")
        require(all(0 <= one <= 1 for one in self.decays), f"decays are between 0 and 1, not {self.decays}")
        require(
            all(one >= 0 for one in self.weights) and sum(self.weights) <= 1,
            f"weights are 0 or more and add up to 1 at most, not {self.weights}: the column would rise",
        )

    def column(self, rounds: int) -> Array:
        """The first column of C.

        >>> Buffered((0.5,), (0.25,)).column(4)
        array([1.    , 0.25  , 0.125 , 0.0625])
        """
        ages = np.arange(rounds - 1)
        later = sum(
            (weight * decay**ages for decay, weight in zip(self.decays, self.weights, strict=True)), np.zeros(len(ages))
        )
        return np.minimum.accumulate(np.concatenate([[1.0], later]))  # rounding must not let it rise

    def left(self, goal: Array) -> Array:
        """The first column of A C^-1: C is a ratio of polynomials as long as there are buffers."""
        from scipy.signal import lfilter  # here, since it takes long to load

        bottom = np.poly(self.decays) if self.decays else np.ones(1)
        top = bottom.copy()
        for number, weight in enumerate(self.weights):
            others = np.poly([decay for place, decay in enumerate(self.decays) if place != number])
            top[1:] += weight * np.atleast_1d(others)
        return np.asarray(lfilter(bottom, top, goal))


def error(matrix: Buffered, rounds: int, parts: int, momentum: float = 0.0) -> float:
    """The mean square of the noise on the weights, for noise as large as all that an example moves.

    >>> round(error(Buffered((), ()), rounds=3, parts=1), 6)
    6.0
    """
    left = matrix.left(workload(rounds, momentum))
    return sensitivity(matrix.column(rounds), parts) ** 2 * mean_square(left)


@lru_cache(maxsize=256)
def optimised(buffers: int, rounds: int, parts: int, momentum: float = 0.0) -> Buffered:
    """The buffers that leave the least noise in so many rounds, where an example takes part in one of `parts`.

    It depends on public numbers alone. The privacy of what is released rests on the sensitivity, which is computed of
    what is found, not on its being the best (McMahan et al. 2024, who minimise the same by a gradient).

    >>> found = optimised(2, rounds=100, parts=100)
    >>> round(error(found, 100, 100), 1), round(error(Buffered((), ()), 100, 100), 1)
    (5.4, 50.5)
    """
    from scipy.optimize import minimize

    require(1 <= buffers <= MOST, f"buffers are 1 to {MOST}, not {buffers}")
    require(rounds >= 1, "a matrix is made for at least one round")

    def loss(free: Array) -> float:
        return float(np.log(error(_bounded(free, buffers), rounds, parts, momentum)))

    best = min(
        (minimize(loss, start, method="L-BFGS-B") for start in _starts(buffers, rounds)), key=lambda one: one.fun
    )
    return _rounded(_bounded(best.x, buffers))


def _starts(buffers: int, rounds: int) -> list[Array]:
    """Decays that are spread evenly, by the logarithm of how long they last, up to a share of the run."""
    found = []
    for longest in (max(2.0, rounds / 2), max(2.0, rounds / 10), max(2.0, 4 * rounds)):
        lasts = np.geomspace(1.5, longest, buffers) if buffers > 1 else np.array([np.sqrt(1.5 * longest)])
        decays = 1 - 1 / lasts
        found.append(np.concatenate([np.log(decays / (1 - decays)), -0.5 * np.log(lasts), [0.0]]))
    return found


def _bounded(free: Array, buffers: int) -> Buffered:
    """Decays between 0 and 1, weights that add up to less than 1."""
    decays = 1 / (1 + np.exp(-np.clip(free[:buffers], -12, 12)))
    shares = np.exp(free[buffers:-1] - free[buffers:-1].max())
    weights = shares / shares.sum() / (1 + np.exp(-np.clip(free[-1], -12, 12)))
    return Buffered(tuple(map(float, decays)), tuple(map(float, weights)))


def _rounded(found: Buffered) -> Buffered:
    """With few digits; weights down, so that they add up to no more than before."""
    decays = tuple(round(one, DIGITS) for one in found.decays)
    return Buffered(decays, tuple(math.floor(one * 10**DIGITS) / 10**DIGITS for one in found.weights))
