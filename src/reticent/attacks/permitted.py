"""What a guarantee permits: no attack on a private model can do better than these curves."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr, ndtri

from reticent.attacks.intervals import Floats, rates_at_least, rates_at_most
from reticent.attacks.metrics import Scores


def permitted_tpr(fpr: Floats, epsilon: float, delta: float) -> Floats:
    """The largest true positive rate that (epsilon, delta)-DP permits (Kairouz et al. 2015, thm 2.1).

    >>> permitted_tpr(np.array([0.0, 0.1, 0.5]), epsilon=0.0, delta=0.01)
    array([0.01, 0.11, 0.51])
    """
    if math.isinf(epsilon):
        return np.ones_like(fpr)
    upper = np.exp(epsilon) * fpr + delta
    mirrored = 1 - np.exp(-epsilon) * (1 - delta - fpr)
    return np.asarray(np.clip(np.minimum(upper, mirrored), 0.0, 1.0), dtype=np.float64)


def permitted_tpr_gaussian(fpr: Floats, mu: float) -> Floats:
    """The largest true positive rate that mu-GDP permits (Dong et al. 2022, eq. 6).

    >>> permitted_tpr_gaussian(np.array([0.5]), mu=0.0)
    array([0.5])
    """
    return np.asarray(ndtr(ndtri(fpr) + mu), dtype=np.float64)


def permitted_accuracy(epsilon: float, delta: float) -> float:
    """The largest balanced accuracy that (epsilon, delta)-DP permits.

    >>> permitted_accuracy(0.0, 0.0)
    0.5
    """
    return 1.0 if epsilon > 700 else min(1.0, (math.exp(epsilon) + delta) / (1 + math.exp(epsilon)))


def permitted_auc_gaussian(mu: float) -> float:
    """The largest AUC that mu-GDP permits.

    >>> permitted_auc_gaussian(0.0)
    0.5
    """
    return float(ndtr(mu / math.sqrt(2)))


def exceeds(scores: Scores, epsilon: float, delta: float, *, alpha: float = 1e-3, points: int = 50) -> bool:
    """Whether an attack surely did better than (epsilon, delta)-DP permits: a bug alarm, not a proof.

    (The records of one model are not independent runs; `reticent.audits` has the tests that are.)

    >>> exceeds(Scores(np.ones(500), np.zeros(500)), epsilon=1.0, delta=1e-5)
    True
    """
    everything = np.concatenate([scores.members, scores.outsiders])
    cuts = np.unique(np.quantile(everything, np.linspace(0.01, 0.99, points)))
    level = alpha / (2 * len(cuts))
    right, wrong = ((side >= cuts[:, None]).sum(axis=1) for side in (scores.members, scores.outsiders))
    fpr = rates_at_most(wrong, len(scores.outsiders), level)
    tpr = rates_at_least(right, len(scores.members), level)
    return bool((tpr > permitted_tpr(fpr, epsilon, delta)).any())
