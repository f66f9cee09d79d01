"""Metrics: what a list of scores says about membership, with its uncertainty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from reticent.attacks.intervals import Floats, bca_interval, rate_between
from reticent.errors import SettingError

Threshold = Literal["oracle", "heldout"]


@dataclass(frozen=True, eq=False)
class Scores:
    """What an attack says of members and of non-members; larger means "more likely a member".

    >>> Scores.of(np.array([0.9, 0.1, 0.7]), np.array([True, False, True])).members
    array([0.9, 0.7])
    """

    members: Floats
    outsiders: Floats

    def __post_init__(self) -> None:
        for side, values in (("members", self.members), ("outsiders", self.outsiders)):
            if len(values) == 0:
                raise SettingError(f"no scores of {side}: an attack is judged on both members and non-members")
            if not np.isfinite(values).all():
                raise SettingError(f"a score of {side} is not finite: clip the scores before judging them")

    @staticmethod
    def of(scores: Floats, keep: npt.NDArray[np.bool_]) -> Scores:
        """The scores of any shape, told apart by `keep` (True: the example was trained on)."""
        return Scores(np.asarray(scores[keep], dtype=np.float64), np.asarray(scores[~keep], dtype=np.float64))


@dataclass(frozen=True, eq=False)
class Roc:
    """False and true positive rates as the threshold falls; equal scores move together."""

    fpr: Floats
    tpr: Floats
    thresholds: Floats


def roc(scores: Scores) -> Roc:
    """Every (false, true) positive rate that some threshold "score >= t" reaches.

    >>> roc(Scores(np.array([1.0, 2.0]), np.array([0.0, 1.0]))).tpr
    array([0. , 0.5, 1. , 1. ])
    """
    members, outsiders = np.sort(scores.members), np.sort(scores.outsiders)
    thresholds = np.unique(np.concatenate([members, outsiders]))[::-1]
    above = [(len(side) - np.searchsorted(side, thresholds)) / len(side) for side in (outsiders, members)]
    fpr, tpr = (np.concatenate([[0.0], rates]) for rates in above)
    return Roc(fpr, tpr, np.concatenate([[np.inf], thresholds]))


def auc(scores: Scores) -> float:
    """The chance that a random member scores above a random non-member, ties counting half.

    >>> auc(Scores(np.array([1.0, 2.0]), np.array([0.0, 1.0])))
    0.875
    """
    n_in, n_out = len(scores.members), len(scores.outsiders)
    ranks = rankdata(np.concatenate([scores.members, scores.outsiders]))
    return float((ranks[:n_in].sum() - n_in * (n_in + 1) / 2) / (n_in * n_out))


def auc_standard_error(scores: Scores) -> float:
    """The standard error of the AUC from the placement values (DeLong et al. 1988)."""
    placed_in, placed_out = _placements(scores)
    return float(np.sqrt(placed_in.var(ddof=1) / len(placed_in) + placed_out.var(ddof=1) / len(placed_out)))


def _placements(scores: Scores) -> tuple[Floats, Floats]:
    """For each member the share of non-members below it; for each non-member the share of members above it."""
    shares = []
    for ours, theirs in ((scores.members, scores.outsiders), (-scores.outsiders, -scores.members)):
        ordered = np.sort(theirs)
        below, at_most = np.searchsorted(ordered, ours, side="left"), np.searchsorted(ordered, ours, side="right")
        shares.append((below + at_most) / (2 * len(ordered)))
    return shares[0], shares[1]


def auc_interval(scores: Scores, *, alpha: float = 0.05, resamples: int = 1000, seed: int = 0) -> tuple[float, float]:
    """The BCa bootstrap interval of the AUC, members and non-members resampled apart.

    >>> low, high = auc_interval(Scores(np.arange(50.0) + 10, np.arange(50.0)))
    >>> low < 0.68 < high
    True
    """
    value = auc(scores)
    placed_in, placed_out = _placements(scores)
    pulls = (placed_in - value, placed_out - value)
    return bca_interval(value, _resampled_aucs(scores, resamples, np.random.default_rng(seed)), pulls, alpha)


def _resampled_aucs(scores: Scores, resamples: int, rng: np.random.Generator) -> Floats:
    """Bootstrap AUCs in linear time each: sort once, then only the multiplicities change."""
    n_in, n_out = len(scores.members), len(scores.outsiders)
    levels, place = np.unique(np.concatenate([scores.members, scores.outsiders]), return_inverse=True)
    results = np.empty(resamples)
    for i in range(resamples):
        ours = np.bincount(place[rng.integers(n_in, size=n_in)], minlength=len(levels))
        theirs = np.bincount(place[n_in + rng.integers(n_out, size=n_out)], minlength=len(levels))
        below = np.cumsum(theirs) - theirs / 2
        results[i] = (ours * below).sum() / (n_in * n_out)
    return results


@dataclass(frozen=True)
class Accuracy:
    """Balanced accuracy and advantage at one threshold, and how that threshold was chosen."""

    balanced: float
    threshold: float
    chosen: Threshold

    @property
    def advantage(self) -> float:
        """TPR - FPR at the threshold (Yeom et al. 2018, def. 4)."""
        return 2 * self.balanced - 1


def balanced_accuracy(scores: Scores, threshold: Threshold = "heldout", *, seed: int = 0) -> Accuracy:
    """Balanced accuracy at the best threshold, found on the same scores ("oracle") or on the other half ("heldout").

    The papers report the oracle; it is optimistic, most of all with few scores.

    >>> balanced_accuracy(Scores(np.array([3.0, 4.0]), np.array([1.0, 2.0])), "oracle").advantage
    1.0
    """
    if threshold == "oracle":
        cut, judged = _best_threshold(scores), scores
    else:
        learned, judged = _halves(scores, seed)
        cut = _best_threshold(learned)
    hit, false_alarm = (judged.members >= cut).mean(), (judged.outsiders >= cut).mean()
    return Accuracy(float(1 + hit - false_alarm) / 2, cut, threshold)


def _best_threshold(scores: Scores) -> float:
    curve = roc(scores)
    return float(curve.thresholds[np.argmax(curve.tpr - curve.fpr)])


def _halves(scores: Scores, seed: int) -> tuple[Scores, Scores]:
    if min(len(scores.members), len(scores.outsiders)) < 2:
        raise SettingError('a held-out threshold needs two members and two non-members: use threshold="oracle"')
    rng = np.random.default_rng(seed)
    mixed = [rng.permutation(side) for side in (scores.members, scores.outsiders)]
    learned, judged = ([side[part::2] for side in mixed] for part in (0, 1))
    return Scores(*learned), Scores(*judged)


@dataclass(frozen=True)
class TprAtFpr:
    """The largest true positive rate whose false positive rate is at most `fpr`, with its Clopper-Pearson interval."""

    fpr: float
    tpr: float
    low: float
    high: float
    stable: bool
    """False where fewer than ten false positives decide it."""


def tpr_at_fpr(scores: Scores, fpr: float, *, alpha: float = 0.05) -> TprAtFpr:
    """The true positive rate at a small false positive rate (Carlini et al. 2022); refused with too few non-members.

    >>> tpr_at_fpr(Scores(np.arange(100.0) + 50, np.arange(100.0)), 0.1).tpr
    0.6
    """
    n_out = len(scores.outsiders)
    if not 0 < fpr < 1:
        raise SettingError(f"a false positive rate lies between 0 and 1, not {fpr}")
    if fpr * n_out < 1:
        needed = int(np.ceil(round(1 / fpr, 6)))
        raise SettingError(
            f"TPR at {fpr:.2%} FPR needs at least {needed} non-members, there are {n_out}: score more of them, "
            "or pool the leave-one-out scores of all models"
        )
    curve = roc(scores)
    tpr = float(curve.tpr[curve.fpr <= fpr].max())
    low, high = rate_between(round(tpr * len(scores.members)), len(scores.members), alpha)
    return TprAtFpr(fpr, tpr, low, high, stable=fpr * n_out >= 10)
