"""Estimators of scikit-learn: `fit` is `rt.fit`, and what is proved is in `guarantee_`."""

from __future__ import annotations

import copy
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import nn

from reticent.accounting import Guarantee
from reticent.errors import PrivacyWarning, SettingError
from reticent.fitting import fit
from reticent.trained import Trained

Model = nn.Module | Callable[[int, int], nn.Module] | None
"""A network, which is copied; what makes one of (features, outputs); or a linear one."""

Given: TypeAlias = Any
"""What scikit-learn calls X, y or random_state: whatever its own checks let pass."""

Array = NDArray[Given]
SEVERAL = (
    "cross-validation, searches and ensembles fit a private model for every fold, setting and member, and each of them "
    "spends its epsilon of the examples it is given: k folds cost an example up to k - 1 times as much, and a "
    "guarantee says nothing of a model chosen or joined so. rt.tune pays for a choice (docs/sklearn.md)"
)

MAKE_SEVERAL = tuple(
    f"sklearn.{part}"
    for part in ("model_selection", "ensemble", "multiclass", "multioutput", "calibration", "feature_selection")
)
"""Parts of scikit-learn that fit an estimator several times."""

LABELS = "which labels there are is public: they were counted on the examples (classes= declares them)"
"""What a guarantee rests on where nobody declared the labels."""

EXPECTED_FAILURES = {
    "check_regressors_train": "it asks for half of the variance of 200 examples: more than epsilon 1 lets through",
}
"""Checks of `check_estimator` that do not hold, with the reason."""


class _PrivateEstimator(BaseEstimator):
    """What classifier and regressor have in common."""

    guarantee_: Guarantee
    trained_: Trained

    def __init__(
        self,
        model: Model = None,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        epochs: float | None = None,
        batch_size: float | None = None,
        lr: float | None = None,
        method: str = "dpsgd",
        size: int | None = None,
        loss: Given = None,
        random_state: Given = None,
    ):
        self.model = model
        self.epsilon = epsilon
        self.delta = delta
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.method = method
        self.size = size
        self.loss = loss
        self.random_state = random_state

    def _fitted(self, x: Array, y: Array, outputs: int, loss: str, assumes: tuple[str, ...] = ()) -> Self:
        if _one_of_several():
            warnings.warn(SEVERAL, PrivacyWarning, stacklevel=3)
        state = self.random_state
        seed = None if state is None else int(check_random_state(state).randint(2**31 - 1))
        with torch.random.fork_rng(devices=[], enabled=seed is not None):
            if seed is not None:
                torch.manual_seed(seed)
            net = self._network(x.shape[1], outputs)
        names = ("epsilon", "delta", "epochs", "batch_size", "lr", "method", "size")
        said = {name: getattr(self, name) for name in names}
        chosen = loss if self.loss is None else self.loss
        trained = fit(net, (x.astype(np.float32), y), loss=chosen, seed=seed, **said)
        promised = trained.guarantee
        self.guarantee_ = replace(promised, assumptions=promised.assumptions + assumes)
        self.trained_ = replace(trained, guarantee=self.guarantee_)
        return self

    def _network(self, features: int, outputs: int) -> nn.Module:
        if self.model is None:
            linear = nn.Linear(features, outputs)
            nn.init.zeros_(linear.weight)
            nn.init.zeros_(linear.bias)
            return linear
        made = copy.deepcopy(self.model) if isinstance(self.model, nn.Module) else self.model(features, outputs)
        if not isinstance(made, nn.Module):
            raise SettingError("model must be a network, or make one of (features, outputs)")
        return made

    def _outputs(self, x: Given) -> torch.Tensor:
        check_is_fitted(self, "trained_")
        x = validate_data(self, x, reset=False, dtype=np.float64)
        if self.model is None:  # in double precision, so that no answer depends on the rows beside it
            linear = self.trained_.model
            return nn.functional.linear(torch.as_tensor(x), *(part.detach().double() for part in linear.parameters()))
        return self.trained_.predict(torch.as_tensor(x, dtype=torch.float32))


class PrivateClassifier(ClassifierMixin, _PrivateEstimator):
    """A classifier trained within (epsilon, delta); `classes` declares the labels, which else are taken as public.

    >>> x = np.random.default_rng(0).normal(size=(200, 3))
    >>> made = PrivateClassifier(epsilon=3.0, random_state=0).fit(x, x[:, 0] > 0)
    >>> made.predict(x[:2]).dtype, made.guarantee_.epsilon <= 3.0
    (dtype('bool'), True)
    """

    def __init__(
        self,
        model: Model = None,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        epochs: float | None = None,
        batch_size: float | None = None,
        lr: float | None = None,
        method: str = "dpsgd",
        size: int | None = None,
        classes: Sequence[Given] | None = None,
        loss: Given = None,
        random_state: Given = None,
    ):
        super().__init__(
            model,
            epsilon=epsilon,
            delta=delta,
            epochs=epochs,
            batch_size=batch_size,
            lr=lr,
            method=method,
            size=size,
            loss=loss,
            random_state=random_state,
        )
        self.classes = classes

    def fit(self, X: Given, y: Given) -> Self:
        x, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_ = np.unique(y if self.classes is None else np.asarray(self.classes))
        if len(self.classes_) < 2:
            raise ValueError("Classifier can't train when only one class is present: there must be two")
        if not np.isin(y, self.classes_).all():
            raise SettingError("some labels are not among the classes that were declared")
        numbers: Array = np.asarray(np.searchsorted(self.classes_, y))
        assumes = (LABELS,) if self.classes is None else ()
        return self._fitted(x, numbers, len(self.classes_), "cross_entropy", assumes)

    def decision_function(self, X: Given) -> Array:
        """The outputs of the network; of two classes, how much the second is above the first."""
        found = self._outputs(X).numpy()
        return found[:, 1] - found[:, 0] if len(self.classes_) == 2 else found

    def predict_proba(self, X: Given) -> Array:
        """The chance of each class, by the network's outputs."""
        return torch.softmax(self._outputs(X).double(), 1).numpy()

    def predict(self, X: Given) -> Array:
        """The class of each row."""
        found = self._outputs(X).argmax(1).numpy()
        labels: Array = self.classes_[found]
        return labels


class PrivateRegressor(RegressorMixin, _PrivateEstimator):
    """A regressor trained within (epsilon, delta), by the squared error unless another loss is given.

    >>> x = np.random.default_rng(0).normal(size=(200, 3))
    >>> PrivateRegressor(epsilon=3.0, random_state=0).fit(x, x[:, 0]).predict(x[:2]).shape
    (2,)
    """

    def fit(self, X: Given, y: Given) -> Self:
        x, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        return self._fitted(x, np.asarray(y, np.float32), 1, "mse")

    def predict(self, X: Given) -> Array:
        """The value of each row."""
        return self._outputs(X).double().numpy().reshape(-1)


def _one_of_several() -> bool:
    """Whether a fold, a search or an ensemble is under way."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        frame = frame.f_back
        if str(frame.f_globals.get("__name__", "")).startswith(MAKE_SEVERAL):
            return True
    return False
