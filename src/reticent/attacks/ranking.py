"""Ranking: which records the models give away most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reticent.attacks.intervals import Floats
from reticent.attacks.signals import Bools


@dataclass(frozen=True)
class Exposed:
    """One record and how far its score rises when it is trained on, in standard deviations of its score without it."""

    record: int
    rise: float


def exposure(matrix: Floats, keep: Bools) -> Floats:
    """For each record: mean score of the models with it minus without it, over the pooled spread of the scores.

    >>> exposure(np.array([[3.0, 0.0], [1.0, 0.0]]), np.array([[True, True], [False, False]]))
    array([2., 0.])
    """
    inside, outside = keep.sum(axis=0), (~keep).sum(axis=0)
    mean_in = np.where(keep, matrix, 0.0).sum(axis=0) / np.maximum(inside, 1)
    mean_out = np.where(keep, 0.0, matrix).sum(axis=0) / np.maximum(outside, 1)
    centred = matrix - np.where(keep, mean_in, mean_out)
    spread = np.sqrt((centred**2).sum() / max(matrix.size - 2 * matrix.shape[1], 1))
    rise = (mean_in - mean_out) / (spread or 1.0)
    return np.where((inside > 0) & (outside > 0), rise, 0.0)


def most_exposed(matrix: Floats, keep: Bools, count: int = 10) -> list[Exposed]:
    """The `count` records whose membership shows most, the worst first.

    >>> most_exposed(np.array([[9.0, 0.1], [0.0, 0.0]]), np.array([[True, True], [False, False]]), 1)[0].record
    0
    """
    rise = exposure(matrix, keep)
    return [Exposed(int(record), float(rise[record])) for record in np.argsort(-rise, kind="stable")[:count]]
