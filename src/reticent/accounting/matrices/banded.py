"""Banded columns: an example is told of in so many rounds, and in no later one (Choquette-Choo et al. 2023)."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from reticent.accounting.matrices.toeplitz import Array, mean_square, workload

DIGITS = 6
"""What is found is rounded to so many, so that it is the same wherever it is found."""


def square_root(bands: int) -> tuple[float, ...]:
    """The square root of the matrix of prefix sums, cut to so many bands, of length 1.

    Its entries are those of (1 - x)^(-1/2): near the best there is for plain SGD (Kalinin & Lampert 2024).

    >>> [round(one, 3) for one in square_root(3)]
    [0.848, 0.424, 0.318]
    """
    found = [1.0]
    for place in range(1, bands):
        found.append(found[-1] * (2 * place - 1) / (2 * place))
    return _of_length_one(found)


@lru_cache(maxsize=256)
def optimised(bands: int, rounds: int, momentum: float = 0.0) -> tuple[float, ...]:
    """The column of length 1 that leaves the least noise in so many rounds, on the mean over them.

    It depends on public numbers alone. The privacy of what is released rests on its length, not on its being the best.

    >>> [round(one, 3) for one in optimised(3, rounds=100)]
    [0.719, 0.532, 0.447]
    """
    from scipy.optimize import minimize

    goal = workload(rounds, momentum)
    start = np.array(square_root(bands)) / square_root(bands)[0]

    def loss(others: Array) -> tuple[float, Array]:
        return _log_error(np.concatenate([[1.0], others]), goal)

    found = start
    if bands > 1:
        found = np.concatenate([[1.0], minimize(loss, start[1:], jac=True, method="L-BFGS-B").x])
    return _of_length_one([float(one) for one in found.round(DIGITS)])


def error(column: tuple[float, ...], rounds: int, momentum: float = 0.0) -> float:
    """The mean square of the noise on the weights, for noise of deviation 1 in each round.

    >>> error((1.0,), rounds=3)
    2.0
    """
    return mean_square(_left(np.array(column), workload(rounds, momentum)))


def _left(column: Array, goal: Array) -> Array:
    """The first column of A C^-1: the series of A over that of C, one after the other in as many steps as bands."""
    from scipy.signal import lfilter  # here, since it takes long to load

    return np.asarray(lfilter([1.0], column[: len(goal)], goal))


def _log_error(column: Array, goal: Array) -> tuple[float, Array]:
    """The logarithm of length squared times error, and its gradient by the entries after the first.

    With e = A / C as series, de / dc_j is -x^j e / C: what multiplies it is divided by C backwards in time.
    """
    rounds, bands = len(goal), len(column)
    left = _left(column, goal)
    weighed = left * np.arange(rounds, 0, -1)
    total, length = float(left @ weighed), float(column @ column)
    back = _left(column, weighed[::-1])[::-1]
    slopes = np.array([-2 * (back[ago:] @ left[: rounds - ago]) if ago < rounds else 0.0 for ago in range(1, bands)])
    return math.log(total) + math.log(length), slopes / total + 2 * column[1:] / length


def _of_length_one(found: list[float]) -> tuple[float, ...]:
    length = math.sqrt(math.fsum(one**2 for one in found)) * (1 + 1e-12)
    return tuple(one / length for one in found)
