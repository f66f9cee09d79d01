"""Measuring: which metrics belong to a model's answers, and the same for a model that always answers alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import one_hot

from reticent.errors import DataError, UnknownName
from reticent.evaluating.predicting import answers
from reticent.losses.meeting import Kind, classes, one_by_one, ranks

IGNORED = -100
"""Labels that torch's losses leave out are left out here."""


def evaluate(
    model: nn.Module, x: Any, y: Any = None, *, task: str | None = None, outputs: str | None = None
) -> dict[str, Any]:
    """Metrics of a model's answers by task, each beside that of the majority class or the mean (`baseline_...`).

    `task` is "classes", "binary", "ordinal" or "regression"; if not said, it follows from outputs and targets. Outputs
    are "logits" (or plain values) unless they are said to be "probabilities" or, of counts, "logs".

    >>> found = evaluate(nn.Identity(), torch.tensor([[2.0], [-1.0], [0.5]]), torch.tensor([1, 0, 0]))
    >>> round(found["accuracy"], 2), round(found["baseline_accuracy"], 2), found["auc"]
    (0.67, 0.67, 1.0)
    """
    answer, target = answers(model, x, y)
    if not bool(answer.isfinite().all()) or (target.is_floating_point() and not bool(target.isfinite().all())):
        raise DataError("some outputs or targets are not finite: look for examples that are missing or cannot be read")
    kind = _kind(task) or guessed(answer, target)
    measure: Mapping[Kind, Callable[[Tensor, Tensor, str | None], dict[str, Any]]] = {
        "classes": _classes,
        "binary": _binary,
        "ordinal": _ordinal,
        "regression": _regression,
    }
    return measure[kind](answer.double(), target, outputs)


def accuracy(model: nn.Module, x: Any, y: Any = None) -> float:
    """The share of right answers of a classifier with one output for each class.

    >>> accuracy(nn.Identity(), torch.eye(3), torch.tensor([0, 1, 1]))
    0.6666666666666666
    """
    answer, target = answers(model, x, y)
    return float((answer.argmax(1) == target).double().mean())


def guessed(answer: Tensor, target: Tensor) -> Kind:
    """What was learned, where nobody says so: by the shapes of outputs and targets, and whether all targets are 0 or 1.

    >>> guessed(torch.zeros(3, 1), torch.tensor([0, 1, 1])), guessed(torch.zeros(3, 1), torch.tensor([0.5, 1, 2]))
    ('binary', 'regression')
    """
    flat = answer.squeeze(-1) if answer.ndim > 1 and answer.shape[-1] == 1 else answer
    if flat.shape == (target.squeeze(-1) if target.ndim > 1 and target.shape[-1] == 1 else target).shape:
        return "binary" if bool(((target == 0) | (target == 1)).all()) else "regression"
    return "classes"


def _kind(task: str | None) -> Kind | None:
    if task is not None and task not in get_args(Kind):
        raise UnknownName("task", task, get_args(Kind))
    return cast("Kind | None", task)


def _classes(answer: Tensor, target: Tensor, outputs: str | None) -> dict[str, Any]:
    from reticent.evaluating import metrics  # scikit-learn takes a second to load

    logits, y = classes(answer, _whole(target))
    if y.is_floating_point():
        raise DataError("the targets are probabilities: give the class of each example to evaluate")
    logits, y = logits.movedim(1, -1).flatten(0, -2), y.flatten()
    logits, y = logits[y != IGNORED], y[y != IGNORED]
    _refuse_outside(y, logits.shape[1])
    chances = logits if outputs == "probabilities" else logits.softmax(1)
    return _beside(metrics.of_classes, y, chances, one_hot(y, logits.shape[1]).double().mean(0))


def _binary(answer: Tensor, target: Tensor, outputs: str | None) -> dict[str, Any]:
    from reticent.evaluating import metrics

    logits, y = one_by_one(answer, target)
    if not bool(((y == 0) | (y == 1)).all()):
        raise DataError("targets must be 0 or 1, as many as the model has outputs")
    chances, y = logits if outputs == "probabilities" else logits.sigmoid(), y.long()
    if chances.ndim == 1 or chances.shape[1:].numel() == 1:
        yes, y = chances.flatten(), y.flatten()
        return _beside(metrics.of_classes, y, torch.stack([1 - yes, yes], 1), one_hot(y, 2).double().mean(0))
    return _beside(metrics.of_labels, y.flatten(1), chances.flatten(1), y.flatten(1).double().mean(0))


def _ordinal(answer: Tensor, target: Tensor, _outputs: str | None) -> dict[str, Any]:
    from reticent.evaluating import metrics

    logits, y = ranks(answer, _whole(target))
    count = logits.shape[1] + 1
    _refuse_outside(y, count)

    def of_ranks(y: NDArray[Any], said: NDArray[Any]) -> dict[str, Any]:
        return metrics.of_ranks(y, said, count)

    return _beside(of_ranks, y, (logits > 0).sum(1), y.mode().values)


def _regression(answer: Tensor, target: Tensor, outputs: str | None) -> dict[str, Any]:
    from reticent.evaluating import metrics

    values, y = one_by_one(answer, target)
    said, y = (values.exp() if outputs == "logs" else values).reshape(len(values), -1), y.reshape(len(values), -1)
    return _beside(metrics.of_numbers, y, said, y.mean(0))


def _beside(
    measure: Callable[[NDArray[Any], NDArray[Any]], dict[str, Any]], y: Tensor, said: Tensor, always: Tensor
) -> dict[str, Any]:
    """The metrics of what a model says, and of saying always the same."""
    truth = y.numpy()
    same = measure(truth, np.repeat(always.numpy()[None], len(truth), 0))
    baseline = {f"baseline_{name}": value for name, value in same.items() if name != "confusion_matrix"}
    return {**measure(truth, said.numpy()), **baseline}


def _whole(target: Tensor) -> Tensor:
    """Whole numbers that were stored as floating ones."""
    return target.long() if target.is_floating_point() and bool((target == target.round()).all()) else target


def _refuse_outside(y: Tensor, count: int) -> None:
    if len(y) == 0 or int(y.min()) < 0 or int(y.max()) >= count:
        found = f"from {int(y.min())} to {int(y.max())}" if len(y) else "none"
        raise DataError(f"labels must be whole numbers from 0 to {count - 1}, as the model has outputs; found {found}")
