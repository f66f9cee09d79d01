"""What a lower triangular Toeplitz matrix does: how far one example moves its answers, how much noise is left over.

Answers are C x + z: x the sums of the rounds, z fresh noise, c the first column of C. Outside C is inverted, and what
training adds up is A C^-1 z beside A x, where A makes weights of steps: prefix sums, with momentum of decaying ones.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reticent.errors import SettingError, require

Array = NDArray[np.float64]


def workload(rounds: int, momentum: float = 0.0) -> Array:
    """The first column of A: what a gradient has added to the weights after so many rounds.

    >>> workload(3), workload(3, momentum=0.5)
    (array([1., 1., 1.]), array([1.  , 1.5 , 1.75]))
    """
    require(0 <= momentum < 1, f"momentum is 0 or more and below 1, not {momentum}")
    return np.cumsum(momentum ** np.arange(rounds))


def mean_square(left: Array) -> float:
    """The mean over all rounds of the squared noise on the weights, from the first column of A C^-1.

    After t rounds it is the sum of the first t squares: the first of n squares counts n times, the last once.

    >>> mean_square(np.ones(3))
    2.0
    """
    rounds = len(left)
    return float((left**2 @ np.arange(rounds, 0, -1)) / rounds)


def sensitivity(column: Array, parts: int) -> float:
    """How far all answers together move by an example of length 1 that takes part in every round in `parts`, at most.

    That is the length of the sum of columns 0, b, 2b, ...: no pattern of rounds that are at least b apart moves them
    further, as long as no entry of the column is negative or above the one before it (Kalinin & Lampert 2024,
    theorem 2; docs/methods/blt.md has the proof). Other columns are refused.

    >>> round(sensitivity(np.array([1.0, 0.5, 0.25]), parts=2) ** 2, 6), 1.0**2 + 0.5**2 + 1.25**2
    (2.8125, 2.8125)
    """
    require(parts >= 1, f"an example takes part in one of at least 1 rounds, not of {parts}")
    if (column < 0).any() or (np.diff(column) > 0).any():
        raise SettingError("how far an example moves all answers is known for columns that fall, and not below 0")
    parts = min(parts, len(column))  # beyond, it takes part once
    turns = -(-len(column) // parts)
    filled = np.zeros(turns * parts)
    filled[: len(column)] = column
    moved = filled.reshape(turns, parts).cumsum(0).reshape(-1)[: len(column)]
    return float(np.sqrt((moved**2).sum()))
