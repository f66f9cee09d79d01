"""Summary: the figures of one attack, ready to be printed, stored or drawn."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field

from reticent.attacks.metrics import (
    Accuracy,
    Scores,
    TprAtFpr,
    auc,
    auc_interval,
    auc_standard_error,
    balanced_accuracy,
    tpr_at_fpr,
)
from reticent.attacks.pictures import Histogram, histogram, thinned_roc
from reticent.errors import SettingError

LOW_RATES = (0.01, 0.001, 0.0001)


@dataclass(frozen=True)
class Summary:
    """What one attack reached, and on how many scores."""

    attack: str
    members: int
    outsiders: int
    auc: float
    auc_low: float
    auc_high: float
    standard_error: float
    heldout: Accuracy
    oracle: Accuracy
    at_low_rates: tuple[TprAtFpr, ...]
    refused: tuple[str, ...]
    """Why a true positive rate at some low false positive rate is not given."""
    fpr: tuple[float, ...] = field(repr=False)
    tpr: tuple[float, ...] = field(repr=False)
    histogram: Histogram = field(repr=False)

    def to_json(self) -> dict[str, object]:
        """The figures as plain JSON data; a threshold that nothing reaches is null."""
        return asdict(self) | {"heldout": _plain(self.heldout), "oracle": _plain(self.oracle)}


def _plain(accuracy: Accuracy) -> dict[str, object]:
    threshold = accuracy.threshold if math.isfinite(accuracy.threshold) else None
    return asdict(accuracy) | {"threshold": threshold, "advantage": accuracy.advantage}


def summarise(attack: str, scores: Scores, *, alpha: float = 0.05, seed: int = 0) -> Summary:
    """Every figure of one attack's scores.

    >>> import numpy as np
    >>> summarise("loss", Scores(np.arange(100.0) + 20, np.arange(100.0))).refused[0]
    'TPR at 0.10% FPR needs at least 1000 non-members, there are 100: ...'
    """
    rates, refused = [], []
    for fpr in LOW_RATES:
        try:
            rates.append(tpr_at_fpr(scores, fpr, alpha=alpha))
        except SettingError as reason:
            refused.append(str(reason))
    low, high = auc_interval(scores, alpha=alpha, seed=seed)
    curve = thinned_roc(scores)
    return Summary(
        attack,
        len(scores.members),
        len(scores.outsiders),
        auc(scores),
        low,
        high,
        auc_standard_error(scores),
        balanced_accuracy(scores, "heldout", seed=seed),
        balanced_accuracy(scores, "oracle"),
        tuple(rates),
        tuple(refused),
        curve.fpr,
        curve.tpr,
        histogram(scores),
    )
