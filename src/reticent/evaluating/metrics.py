"""Metrics, by scikit-learn: of probabilities of classes, of several yes or no, of ranks and of numbers."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics

Array: TypeAlias = NDArray[Any]
Metrics: TypeAlias = dict[str, Any]

BINS = 15
"""Of confidence, for the expected calibration error."""


def of_classes(y: Array, chances: Array) -> Metrics:
    """Classes 0 to k - 1 against a probability for each.

    >>> found = of_classes(np.array([0, 1, 1]), np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]))
    >>> round(found["accuracy"], 2), found["auc"], found["confusion_matrix"]
    (0.67, 1.0, [[1, 0], [1, 1]])
    """
    said, classes = chances.argmax(1), np.arange(chances.shape[1])
    indicators = (y[:, None] == classes).astype(int)
    seen = indicators.any(0) if len(classes) > 2 else classes == 1
    return {
        **of_choices(y, said, len(classes)),
        **_ranked(indicators[:, seen], chances[:, seen]),
        "log_loss": float(metrics.log_loss(y, _sure(chances), labels=classes)),
        "brier": float(metrics.mean_squared_error(indicators, chances) * (len(classes) if len(classes) > 2 else 1)),
        "calibration_error": calibration_error(said == y, chances.max(1)),
    }


def of_choices(y: Array, said: Array, classes: int) -> Metrics:
    """Classes 0 to k - 1 against one for each example."""
    confusion = metrics.confusion_matrix(y, said, labels=np.arange(classes))
    there = confusion.sum(1) > 0
    return {
        "accuracy": float(metrics.accuracy_score(y, said)),
        # balanced_accuracy_score warns of answers that are no target; a mean of recalls over the targets is the same.
        "balanced_accuracy": float(metrics.recall_score(y, said, labels=np.flatnonzero(there), average="macro")),
        "confusion_matrix": confusion.tolist(),
    }


def of_labels(y: Array, chances: Array) -> Metrics:
    """Several labels of yes (1) or no (0) for each example, against the probability of yes."""
    said = (chances > 0.5).astype(int)
    seen = (y.min(0) == 0) & (y.max(0) == 1)
    losses = [metrics.log_loss(y[:, i], _sure(chances[:, i]), labels=[0, 1]) for i in range(y.shape[1])]
    return {
        "accuracy": float(1 - metrics.hamming_loss(y, said)),
        "exact_match": float(metrics.accuracy_score(y, said)),
        **_ranked(y[:, seen], chances[:, seen]),
        "log_loss": float(np.mean(losses)),
        "brier": float(metrics.mean_squared_error(y, chances)),
        "calibration_error": calibration_error((said == y).ravel(), np.maximum(chances, 1 - chances).ravel()),
        "confusion_matrix": metrics.multilabel_confusion_matrix(y, said).tolist(),
    }


def of_ranks(y: Array, said: Array, ranks: int) -> Metrics:
    """Ranks 0 to k - 1 against one for each example."""
    return {**of_choices(y, said, ranks), "mae": float(metrics.mean_absolute_error(y, said))}


def of_numbers(y: Array, said: Array) -> Metrics:
    """Numbers against numbers.

    >>> of_numbers(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 2.0]))["r2"]
    0.5
    """
    return {
        "mae": float(metrics.mean_absolute_error(y, said)),
        "rmse": float(metrics.root_mean_squared_error(y, said)),
        "r2": float(metrics.r2_score(y, said)) if len(y) > 1 else float("nan"),
    }


def calibration_error(right: Array, confidence: Array) -> float:
    """The expected calibration error: how far confidence is from the share of right answers, over 15 equal bins.

    >>> calibration_error(np.array([1, 0, 1, 1]), np.array([0.75, 0.75, 0.75, 0.75]))
    0.0
    """
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, weights=right - confidence, minlength=BINS)
    return float(np.abs(gaps).sum() / len(confidence))


def _ranked(indicators: Array, chances: Array) -> Metrics:
    """How well chances put yes before no, over the classes that are there; not a number if only one is."""
    both = (indicators.min(0) == 0) & (indicators.max(0) == 1)
    if not both.any():
        return {"auc": float("nan"), "average_precision": float("nan")}
    y, chances = indicators[:, both], chances[:, both]
    return {
        "auc": float(metrics.roc_auc_score(y, chances, average="macro")),
        "average_precision": float(metrics.average_precision_score(y, chances, average="macro")),
    }


def _sure(chances: Array) -> Array:
    """The same, of sum one also after rounding; log_loss itself keeps away from 0."""
    return chances / chances.sum(1, keepdims=True) if chances.ndim > 1 else chances
