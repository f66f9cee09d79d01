"""Pictures of scores: the ROC in few points and the histogram in few bars, small enough to be stored and drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reticent.attacks.intervals import Floats
from reticent.attacks.metrics import Scores, roc

POINTS = 200
BARS = 30
REACH = 3.0
"""How far the axis goes beyond the middle half of the scores, in widths of it: wild ones would squeeze the others."""


@dataclass(frozen=True)
class Curve:
    """Some points of a ROC; `fpr` rises."""

    fpr: tuple[float, ...]
    tpr: tuple[float, ...]


def thinned_roc(scores: Scores, points: int = POINTS) -> Curve:
    """At most so many points that the attack reaches, evenly over the decades: small false positive rates matter most.

    >>> thinned_roc(Scores(np.array([1.0, 2.0]), np.array([0.0, 1.0])))
    Curve(fpr=(0.0, 0.0, 0.5, 1.0), tpr=(0.0, 0.5, 1.0, 1.0))
    """
    curve = roc(scores)
    rates = np.geomspace(1 / len(scores.outsiders), 1.0, points - 3)
    best = np.searchsorted(curve.fpr, [0.0, *rates * (1 + 1e-9)], side="right") - 1  # the last point of each rate
    places = np.unique([0, *best, len(curve.fpr) - 1])
    return Curve(_short(curve.fpr[places]), _short(curve.tpr[places]))


@dataclass(frozen=True)
class Histogram:
    """How many members and how many others scored between each two edges; the outermost bars hold all beyond."""

    edges: tuple[float, ...]
    members: tuple[int, ...]
    outsiders: tuple[int, ...]


def histogram(scores: Scores, bars: int = BARS) -> Histogram:
    """The scores in bars of equal width.

    >>> histogram(Scores(np.array([1.0, 2.0]), np.array([0.0, 1.0])), bars=2)
    Histogram(edges=(0.0, 1.0, 2.0), members=(0, 2), outsiders=(1, 1))
    """
    everything = np.concatenate([scores.members, scores.outsiders])
    low, quarter, three_quarters, high = np.quantile(everything, [0.0, 0.25, 0.75, 1.0])
    reach = REACH * (three_quarters - quarter) or np.inf  # most scores may be one and the same
    within = max(low, quarter - reach), min(high, three_quarters + reach)
    edges = np.histogram_bin_edges([], bars, within)  # of nothing: the range alone decides
    counts = (np.histogram(side.clip(edges[0], edges[-1]), edges)[0] for side in (scores.members, scores.outsiders))
    members, outsiders = (tuple(count.tolist()) for count in counts)
    return Histogram(_short(edges), members, outsiders)


def _short(values: Floats) -> tuple[float, ...]:
    """Six digits: a picture needs no more, and a page holds many of them."""
    return tuple(float(f"{value:.6g}") for value in values)
