"""Selective release: which pairs of acceptance chances one record can bring about.

A candidate drawn with the record absent is kept with a chance a in [low, high]; with the record present, the chance is
a' = (1 - v) a + v b, where v is the validation rate and b the chance if the record is in the validation draw. Both a
and b are averages over the same draws of the other records, and one record moves the logarithm of a chance by at most
`smoothness`: so (a, b) lies in a square cut by two lines through 0, and (a, a'), its affine image, in a convex polygon.
Every cost of a test is convex in the (a, a') of each outcome, so a worst case needs the corners only: theorems C, S and
P of docs/accounting.md say maximum over corners where they mean the supremum over tests.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from reticent.accounting.events import SelectiveAttempt

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Corners:
    """Corners of the polygon, counter-clockwise: the chance under Q (`before`) and under P (`after`) of a direction."""

    before: Array
    after: Array


def corners(attempt: SelectiveAttempt) -> tuple[Corners, Corners]:
    """The corners when the record is removed (P is present, Q absent) and when it is added.

    >>> removed, added = corners(SelectiveAttempt(0.1, 1.0, 0.5, 0.2, 0.4))
    >>> removed.before.round(3), removed.after.round(3)
    (array([0.2, 0.4, 0.4, 0.2]), array([0.2, 0.3, 0.4, 0.3]))
    """
    low, high, share = attempt.accept_low, attempt.accept_high, attempt.validation_rate
    reach = math.inf if attempt.smoothness is None else math.exp(attempt.smoothness)
    if high >= low * reach:
        inside = [
            (low, low),
            (low * reach, low),
            (high, high / reach),
            (high, high),
            (high / reach, high),
            (low, low * reach),
        ]
    else:
        inside = [(low, low), (high, low), (high, high), (low, high)]
    points = list(dict.fromkeys((absent, (1 - share) * absent + share * tested) for absent, tested in inside))
    if len(points) > 1 and (0.0, 0.0) in points:
        points.remove((0.0, 0.0))  # it adds 0 to every integral, and no other corner can be below 0 there
    absent, present = (np.array(values) for values in zip(*points, strict=True))
    return Corners(absent, present), Corners(present[::-1], absent[::-1])


def noisy_test(
    rate: float, noise_multiplier: float, validation_rate: float, validation_noise: float, beta: float
) -> SelectiveAttempt:
    """One attempt of DPSUR: keep iff the clipped, noisy loss change is below beta C_v (Fu et al. 2024, algorithm 2).

    >>> attempt = noisy_test(0.1, 1.0, 0.01, validation_noise=1.0, beta=-1.0)
    >>> round(attempt.accept_low, 3), attempt.accept_high
    (0.159, 0.5)
    """
    low, high = (float(ndtr((beta + side) / (2 * validation_noise))) for side in (-1, 1))
    return SelectiveAttempt(rate, noise_multiplier, validation_rate, low, high)
