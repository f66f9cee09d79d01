"""Estimators of scikit-learn: in pipelines, by its own checks, and with a word on what cross-validation costs."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator
from torch import Tensor, nn

from reticent import load
from reticent.errors import PrivacyWarning, SettingError
from reticent.integrations.sklearn import EXPECTED_FAILURES, LABELS, PrivateClassifier, PrivateRegressor


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
    assert LABELS not in made.guarantee_.assumptions
    with pytest.raises(SettingError, match="not among the classes"):
        PrivateClassifier(classes=[0, 2], **said).fit(x, y)


def test_labels_that_were_counted_are_an_assumption(blobs: tuple[Tensor, Tensor], tmp_path: Path) -> None:
    x, y = (part.numpy() for part in blobs)
    made = PrivateClassifier(epsilon=4.0, delta=1e-3, epochs=1, batch_size=50).fit(x, y)
    assert LABELS in made.guarantee_.assumptions
    made.trained_.save(tmp_path)
    assert LABELS in load(tmp_path, nn.Linear(x.shape[1], 2)).guarantee.assumptions


def test_members_of_an_ensemble_are_warned_of(blobs: tuple[Tensor, Tensor]) -> None:
    x, y = (part.numpy() for part in blobs)
    one = PrivateClassifier(epsilon=4.0, delta=1e-3, epochs=1, batch_size=50, classes=[0, 1])
    with pytest.warns(PrivacyWarning, match="ensembles"):
        BaggingClassifier(one, n_estimators=2).fit(x, y)


def test_cross_validation_is_warned_of(blobs: tuple[Tensor, Tensor]) -> None:
    x, y = (part.numpy() for part in blobs)
    made = PrivateRegressor(epsilon=4.0, delta=1e-3, epochs=1, batch_size=50)
    with pytest.warns(PrivacyWarning, match="fit a private model for every fold"):
        cross_val_score(made, x, y.astype(float), cv=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        made.fit(x, y.astype(float))


def test_an_answer_does_not_depend_on_the_rows_beside_it() -> None:
    x = np.random.default_rng(0).normal(size=(300, 40)) * 30
    made = PrivateRegressor(epsilon=4.0, delta=1e-3, epochs=1, random_state=0).fit(x, x[:, 0])
    alone = np.concatenate([made.predict(row[None]) for row in x])
    assert np.allclose(made.predict(x), alone, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [PrivateClassifier, PrivateRegressor])
def test_what_scikit_learn_checks(kind: type[Any]) -> None:
    check_estimator(kind(), expected_failed_checks=EXPECTED_FAILURES)
