"""Learned attacks: a classifier that tells members from non-members by what the model shows of them.

scikit-learn is loaded where it is used: it takes a second that audits need not wait.
"""

# mypy: untyped-calls-exclude=sklearn

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from reticent.attacks.intervals import Floats
from reticent.attacks.metrics import Scores
from reticent.attacks.signals import Bools, Ints, confidence
from reticent.errors import SettingError

Learner = Literal["mlp", "forest"]

EPOCHS = 100
"""Of the small network: few records, so no share of them is spent on deciding when to stop."""


class Classifier(Protocol):
    """What is learned by: scikit-learn's, as far as it is asked."""

    def fit(self, features: Floats, keep: Bools, /) -> object:
        """Learn which rows of features are members'."""

    def predict_proba(self, features: Floats, /) -> Floats:
        """The chances, row by row, of not being and of being a member."""


def make_learner(kind: Learner, seed: int, trees: int = 200) -> Classifier:
    """A fresh classifier: a small network on standardised features, or a forest."""
    if kind == "forest":
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(trees, min_samples_leaf=5, random_state=seed)
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    network = MLPClassifier((64,), max_iter=EPOCHS, alpha=0.01, random_state=seed)
    standardised: Classifier = make_pipeline(StandardScaler(), network)
    return standardised


def _fit(learner: Classifier, features: Floats, keep: Bools) -> Classifier:
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the number of epochs is fixed, not searched
        learner.fit(features, keep)
    return learner


def posterior_features(posteriors: Floats, labels: Ints, top: int | None = 3) -> Floats:
    """The largest `top` posteriors (None: all) in falling order, and whether the answer is right (Salem et al. 2019).

    >>> posterior_features(np.array([[0.2, 0.7, 0.1]]), np.array([1]), top=2)
    array([[0.7, 0.2, 1. ]])
    """
    ordered = -np.sort(-posteriors, axis=1)[:, :top]
    right = posteriors.argmax(axis=1) == labels
    return np.column_stack([ordered, right]).astype(np.float64)


def whole_outputs(logits: Floats, labels: Ints) -> Floats:
    """The whole output vector: the log-odds of the true class, those of the others in falling order, and the class.

    Shokri et al. 2017 train a network for each class; one that is told the class learns as much from fewer records.

    >>> whole_outputs(np.zeros((1, 2)), np.array([1]))
    array([[0., 0., 0., 1.]])
    """
    odds = np.stack([confidence(logits, np.full(len(logits), one)) for one in range(logits.shape[1])], axis=1)
    own = np.eye(logits.shape[1], dtype=bool)[labels]
    others = -np.sort(-odds[~own].reshape(len(odds), -1), axis=1)
    return np.column_stack([odds[own], others, own]).astype(np.float64)


def taught(members: Floats, outsiders: Floats, kind: Learner, *, seed: int = 0) -> Callable[[Floats], Floats]:
    """Learn from features of shadows' members and of others, as many of each, to score other features."""
    inside, outside = _balanced(members, outsiders, np.random.default_rng(seed))
    features = np.concatenate([inside, outside])
    learner = _fit(make_learner(kind, seed), features, np.arange(len(features)) < len(inside))
    return lambda asked: np.asarray(learner.predict_proba(asked)[:, 1], dtype=np.float64)


def cross_fitted(
    features: Floats, keep: Bools, kind: Learner = "forest", *, folds: int = 5, trees: int = 200, seed: int = 0
) -> Floats:
    """White-box/partial: every record is scored by a classifier that was not fitted on it.

    The adversary knows part of the training set (Nasr et al. 2019); cross-fitting lets each part serve in turn.
    """
    if min(keep.sum(), (~keep).sum()) < folds:
        raise SettingError(f"cross-fitting in {folds} folds needs {folds} members and {folds} non-members")
    from sklearn.model_selection import StratifiedKFold

    scores = np.empty(len(keep))
    for fitted, judged in StratifiedKFold(folds, shuffle=True, random_state=seed).split(features, keep):
        learner = _fit(make_learner(kind, seed, trees), features[fitted], keep[fitted])
        scores[judged] = learner.predict_proba(features[judged])[:, 1]
    return scores


def blind(records: npt.ArrayLike, keep: Bools, *, seed: int = 0) -> Scores:
    """The blind baseline: a classifier on the raw records, which never asks the model.

    Above 0.5 it says that members and non-members differ by themselves, and every attack's figure is inflated by it.
    """
    flat = np.asarray(records, dtype=np.float64).reshape(len(keep), -1)
    return Scores.of(cross_fitted(flat, keep, "forest", trees=50, seed=seed), keep)


def _balanced(members: Floats, outsiders: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """As many of one as of the other: a prior learned from the split would be no evidence."""
    size = min(len(members), len(outsiders))
    chosen = [side[rng.permutation(len(side))[:size]] for side in (members, outsiders)]
    return chosen[0], chosen[1]
