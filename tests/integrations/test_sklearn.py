"""Estimators of scikit-learn: in pipelines, by its own checks, and with a word on what cross-validation costs."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator
from torch import Tensor, nn

from reticent.errors import PrivacyWarning, SettingError
from reticent.integrations.sklearn import EXPECTED_FAILURES, PrivateClassifier, PrivateRegressor


def test_in_a_pipeline_with_names_of_classes(blobs: tuple[Tensor, Tensor]) -> None:
    x, y = blobs[0].numpy(), np.array(["no", "yes"])[blobs[1].numpy()]
    said = {"epsilon": 4.0, "delta": 1e-3, "epochs": 5, "batch_size": 50, "lr": 1.0, "random_state": 0}
    made = make_pipeline(FunctionTransformer(np.tanh), PrivateClassifier(_small, **said)).fit(x, y)
    assert made.score(x, y) > 0.9
    assert set(made.predict(x)) == {"no", "yes"}
    assert made[-1].guarantee_.epsilon <= 4.0
    assert np.allclose(made.predict_proba(x).sum(1), 1)
    again = clone(made).fit(x, y)
    assert np.array_equal(again.predict_proba(x), made.predict_proba(x))


def _small(features: int, outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(features, 8), nn.Tanh(), nn.Linear(8, outputs))


def test_declared_classes_hold_and_others_are_refused(blobs: tuple[Tensor, Tensor]) -> None:
    x, y = (part.numpy() for part in blobs)
    said: dict[str, Any] = {"epsilon": 4.0, "delta": 1e-3, "epochs": 1, "batch_size": 50}
    made = PrivateClassifier(classes=[0, 1, 2], **said).fit(x, y)
    assert made.predict_proba(x[:2]).shape == (2, 3)
    with pytest.raises(SettingError, match="not among the classes"):
        PrivateClassifier(classes=[0, 2], **said).fit(x, y)


def test_cross_validation_is_warned_of(blobs: tuple[Tensor, Tensor]) -> None:
    x, y = (part.numpy() for part in blobs)
    made = PrivateRegressor(epsilon=4.0, delta=1e-3, epochs=1, batch_size=50)
    with pytest.warns(PrivacyWarning, match="fit a private model for every fold"):
        cross_val_score(made, x, y.astype(float), cv=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        made.fit(x, y.astype(float))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [PrivateClassifier, PrivateRegressor])
def test_what_scikit_learn_checks(kind: type[Any]) -> None:
    check_estimator(kind(), expected_failed_checks=EXPECTED_FAILURES)
