"""Metrics by task are scikit-learn's on the same arrays, beside those of the majority and of the mean."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn import dummy, metrics
from torch import Tensor, nn

import reticent as rt
from reticent.errors import DataError, UnknownName
from reticent.evaluating import accuracy, evaluate, predict
from reticent.evaluating.metrics import calibration_error

RNG = np.random.default_rng(0)
N = 200


def given(logits: Any) -> tuple[nn.Module, Tensor]:
    """A model that answers with these: it is the identity."""
    return nn.Identity(), torch.as_tensor(logits)


def softmax(logits: np.ndarray) -> np.ndarray:
    raised = np.exp(logits - logits.max(1, keepdims=True))
    return raised / raised.sum(1, keepdims=True)


@pytest.mark.parametrize("k", [2, 4])
def test_one_of_several_classes(k: int) -> None:
    y, logits = RNG.integers(0, k, N), RNG.normal(size=(N, k))
    logits[np.arange(N), y] += 1.0
    found, chances = evaluate(*given(logits), y), softmax(logits)
    said = chances.argmax(1)
    assert found["accuracy"] == metrics.accuracy_score(y, said)
    assert found["balanced_accuracy"] == pytest.approx(metrics.balanced_accuracy_score(y, said))
    assert found["confusion_matrix"] == metrics.confusion_matrix(y, said).tolist()
    assert found["log_loss"] == pytest.approx(metrics.log_loss(y, chances))
    assert found["brier"] == pytest.approx(metrics.brier_score_loss(y, chances[:, 1] if k == 2 else chances))
    if k == 2:
        assert found["auc"] == pytest.approx(metrics.roc_auc_score(y, chances[:, 1]))
        assert found["average_precision"] == pytest.approx(metrics.average_precision_score(y, chances[:, 1]))
    else:
        assert found["auc"] == pytest.approx(metrics.roc_auc_score(y, chances, multi_class="ovr"))
        assert found["average_precision"] == pytest.approx(metrics.average_precision_score(y, chances))
    for name, strategy in (("accuracy", "most_frequent"), ("balanced_accuracy", "most_frequent")):
        same = dummy.DummyClassifier(strategy=strategy).fit(logits, y).predict(logits)
        expected = getattr(metrics, f"{name}_score")(y, same)
        assert found[f"baseline_{name}"] == pytest.approx(expected)
    prior = dummy.DummyClassifier(strategy="prior").fit(logits, y).predict_proba(logits)
    assert found["baseline_log_loss"] == pytest.approx(metrics.log_loss(y, prior))
    assert found["baseline_auc"] == pytest.approx(0.5)
    assert found["baseline_calibration_error"] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("shape", [(N, 1), (N,)])
@pytest.mark.parametrize("kind", [np.int64, np.float32, bool, np.uint8])
def test_one_logit_is_a_yes_or_no(shape: tuple[int, ...], kind: type) -> None:
    y, logits = RNG.integers(0, 2, N), RNG.normal(size=N)
    logits += 2 * y - 0.5
    found, chance = evaluate(*given(logits.reshape(shape)), y.astype(kind)), 1 / (1 + np.exp(-logits))
    assert found["accuracy"] == metrics.accuracy_score(y, logits > 0) > 0.7
    assert found["auc"] == pytest.approx(metrics.roc_auc_score(y, chance))
    assert found["log_loss"] == pytest.approx(metrics.log_loss(y, chance))
    assert found["brier"] == pytest.approx(metrics.brier_score_loss(y, chance))
    assert found["confusion_matrix"] == metrics.confusion_matrix(y, logits > 0).tolist()
    assert found["baseline_accuracy"] == max(y.mean(), 1 - y.mean())


def test_one_logit_is_the_same_as_two() -> None:
    y, logit = RNG.integers(0, 2, N), RNG.normal(size=N)
    one, two = evaluate(*given(logit), y), evaluate(*given(np.stack([np.zeros(N), logit], 1)), y)
    assert one.keys() == two.keys()
    for name, value in one.items():
        np.testing.assert_allclose(value, two[name], atol=1e-12, err_msg=name)


def test_several_labels() -> None:
    y, logits = RNG.integers(0, 2, (N, 3)), RNG.normal(size=(N, 3))
    found, chances = evaluate(*given(logits), y, task="binary"), 1 / (1 + np.exp(-logits))
    assert found["accuracy"] == pytest.approx(((logits > 0) == y).mean())
    assert found["exact_match"] == metrics.accuracy_score(y, logits > 0)
    assert found["auc"] == pytest.approx(metrics.roc_auc_score(y, chances, average="macro"))
    assert found["average_precision"] == pytest.approx(metrics.average_precision_score(y, chances, average="macro"))
    assert found["log_loss"] == pytest.approx(np.mean([metrics.log_loss(y[:, i], chances[:, i]) for i in range(3)]))
    assert found["brier"] == pytest.approx(((chances - y) ** 2).mean())
    assert found["confusion_matrix"] == metrics.multilabel_confusion_matrix(y, logits > 0).tolist()
    assert found["baseline_accuracy"] == pytest.approx(np.maximum(y.mean(0), 1 - y.mean(0)).mean())
    assert evaluate(*given(logits), y) == found  # all targets are 0 or 1, as many as outputs


@pytest.mark.parametrize("width", [None, 1, 2])
def test_numbers(width: int | None) -> None:
    shape = (N,) if width is None else (N, width)
    y = RNG.normal(size=shape).astype(np.float32)
    said = y + 0.3 * RNG.normal(size=shape).astype(np.float32)
    found = evaluate(*given(said), y)
    assert found["mae"] == pytest.approx(metrics.mean_absolute_error(y, said))
    assert found["rmse"] == pytest.approx(metrics.root_mean_squared_error(y, said))
    assert found["r2"] == pytest.approx(metrics.r2_score(y, said))
    assert found["baseline_r2"] == pytest.approx(0.0, abs=1e-6)
    mean = dummy.DummyRegressor().fit(y, y).predict(y)
    assert found["baseline_mae"] == pytest.approx(metrics.mean_absolute_error(y, mean))
    assert found["baseline_rmse"] == pytest.approx(metrics.root_mean_squared_error(y, mean))
    if width is None:
        assert evaluate(*given(said[:, None]), y) == found


def test_counts_are_answered_by_their_logarithm() -> None:
    y = RNG.poisson(3, N)
    found = evaluate(*given(np.log(np.full((N, 1), 3.0))), y, outputs="logs", task="regression")
    assert found["mae"] == pytest.approx(np.abs(y - 3).mean())


def test_ranks() -> None:
    y = RNG.integers(0, 4, N)
    logits = (y[:, None] > np.arange(3)) * 2.0 - 1 + RNG.normal(size=(N, 3))
    found, said = evaluate(*given(logits), y, task="ordinal"), (logits > 0).sum(1)
    assert found["accuracy"] == metrics.accuracy_score(y, said)
    assert found["mae"] == metrics.mean_absolute_error(y, said)
    assert found["confusion_matrix"] == metrics.confusion_matrix(y, said).tolist()
    common = np.bincount(y).argmax()
    assert found["baseline_accuracy"] == (y == common).mean()
    assert found["baseline_mae"] == np.abs(y - common).mean()


def test_words_with_a_class_each_but_those_left_out() -> None:
    y, logits = RNG.integers(0, 3, (20, 5)), RNG.normal(size=(20, 3, 5))
    y[:, 3:] = -100
    found = evaluate(*given(logits), y)
    assert found["accuracy"] == (logits.argmax(1)[:, :3] == y[:, :3]).mean()
    assert evaluate(*given(np.moveaxis(logits, 1, -1)), y) == found


def test_calibration_is_the_mean_gap_over_fifteen_bins() -> None:
    confidence, right = RNG.uniform(size=N), RNG.integers(0, 2, N)
    edges = np.linspace(0, 1, 16)
    expected = 0.0
    for low, high in itertools.pairwise(edges):
        here = (confidence >= low) & (confidence < high)
        if here.any():
            expected += here.mean() * abs(right[here].mean() - confidence[here].mean())
    assert calibration_error(right, confidence) == pytest.approx(expected)
    assert calibration_error(np.ones(3), np.ones(3)) == 0


def test_classes_that_are_not_there() -> None:
    y, logits = np.array([0, 1, 1, 0]), RNG.normal(size=(4, 5))
    found = evaluate(*given(logits), y)
    assert np.array(found["confusion_matrix"]).shape == (5, 5)
    chances = softmax(logits)
    expected = np.mean([metrics.roc_auc_score(y == c, chances[:, c]) for c in (0, 1)])
    assert found["auc"] == pytest.approx(expected)
    alone = evaluate(*given(logits), np.zeros(4, int))
    assert math.isnan(alone["auc"])
    assert alone["baseline_accuracy"] == 1.0


@pytest.mark.parametrize(
    ("logits", "y", "task", "says"),
    [
        (np.zeros((4, 2)), np.array([0, 1, 2, 0]), None, "from 0 to 1.*found from 0 to 2"),
        (np.zeros((4, 3)), np.array([0, 1]), None, "4 inputs but 2 targets"),
        (np.zeros((4, 1)), np.array([0, 1, 2, 3]), "binary", "targets must be 0 or 1"),
        (np.zeros((4, 2)), np.array([0, 1, 5, 3]), "ordinal", "from 0 to 2"),
        (np.zeros((4, 3)), np.zeros((4, 2)), "regression", "do not fit"),
        (np.full((4, 1), np.nan), np.zeros(4), None, "not finite"),
        (np.zeros((4, 2)), np.array([0.5, 1.0, 0.0, 0.0]), "classes", r"y.long\(\)"),
    ],
)
def test_what_cannot_be_measured_is_said(logits: Any, y: Any, task: str | None, says: str) -> None:
    with pytest.raises(DataError, match=says):
        evaluate(*given(logits), y, task=task)


def test_no_targets_and_no_such_task() -> None:
    with pytest.raises(DataError, match="no targets to compare with"):
        evaluate(nn.Identity(), torch.zeros(3, 2))
    with pytest.raises(UnknownName, match="did you mean 'classes'"):
        evaluate(nn.Identity(), torch.zeros(3, 2), torch.zeros(3), task="clases")


SETTINGS: dict[str, Any] = {"epsilon": 8.0, "delta": 1e-4, "epochs": 10, "batch_size": 100, "lr": 0.3, "seed": 0}
X = torch.as_tensor(RNG.normal(size=(N, 4)), dtype=torch.float32)


@pytest.mark.parametrize(
    ("loss", "outputs", "y", "metric", "least"),
    [
        ("bce", 1, (X.sum(1) > 0).float(), "accuracy", 0.75),
        (nn.BCEWithLogitsLoss(), 4, (X > 0).long(), "auc", 0.75),
        ("cross_entropy", 2, (X.sum(1) > 0).long(), "balanced_accuracy", 0.75),
        ("mse", 1, 0.5 * X.sum(1), "r2", 0.5),
        ("ordinal", 2, (X.sum(1) > -1).long() + (X.sum(1) > 1).long(), "accuracy", 0.6),
    ],
)
def test_a_trained_model_knows_its_task(
    loss: Any, outputs: int, y: Tensor, metric: str, least: float, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    trained = rt.fit(nn.Linear(4, outputs), (X, y), loss=loss, **SETTINGS)
    found = trained.evaluate(X, y)
    assert found[metric] > max(least, found[f"baseline_{metric}"])
    trained.save(tmp_path / "model")
    again = rt.load(tmp_path / "model", nn.Linear(4, outputs))
    assert again.evaluate(X, y) == found
    json.dumps(found, allow_nan=False)
    assert trained.predict(X).shape == (N, outputs)  # logits, as before


def test_the_outputs_of_counts_are_logarithms() -> None:
    trained = rt.fit(nn.Linear(4, 1), (X, X[:, 0].abs().round()), loss="poisson", **SETTINGS | {"lr": 0.01})
    said = trained.predict(X)[:, 0].exp()
    assert trained.evaluate(X, X[:, 0].abs())["mae"] == pytest.approx(float((said - X[:, 0].abs()).abs().mean()))
    plain = rt.fit(nn.Linear(4, 1), (X, X[:, 0]), loss=nn.PoissonNLLLoss(log_input=False), **SETTINGS | {"epochs": 1})
    assert plain.about["loss"] == {"name": "poisson", "task": "regression", "answers": "values"}


def test_probabilities_are_taken_as_such() -> None:
    model, y = nn.Sequential(nn.Linear(4, 1), nn.Sigmoid()), (X.sum(1) > 0).long()
    trained = rt.fit(model, (X, y), loss=nn.BCELoss(), **SETTINGS)
    assert trained.evaluate(X, y)["accuracy"] == float(((predict(model, X)[:, 0] > 0.5) == y).double().mean())
    assert trained.evaluate(X, y)["accuracy"] > 0.75


def test_predicting_leaves_the_mode_and_takes_batches() -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5))
    model.train()
    found = predict(model, X, batch_size=7)
    assert model.training
    torch.testing.assert_close(found, model[0](X))
    assert accuracy(model, X, found.argmax(1)) == 1.0
