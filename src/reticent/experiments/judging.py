"""Judging: what public test examples say of a model, of a classifier by one table of right and wrong answers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from torch import Tensor, nn

from reticent.call import classified
from reticent.data import Dataset
from reticent.data.preprocessing import in_units
from reticent.evaluating import accuracy, evaluate, predict
from reticent.results import ClassAccuracy

MOST_CLASSES = 30
"""A larger table says nothing to a reader, and is not kept."""

Matrix = npt.NDArray[np.int64]


def judged(model: nn.Module, dataset: Dataset) -> tuple[float | None, dict[str, float] | None]:
    """The accuracy on the test examples or, where a number is predicted, the errors in its own units.

    >>> import torch
    >>> from reticent.data import Examples
    >>> points = Examples(torch.tensor([[0.0], [1.0]]), torch.tensor([0.0, 1.0]))
    >>> judged(nn.Identity(), Dataset("a line", points, points, 1, ""))[1]["r2"]
    1.0
    """
    if dataset.test is None:
        return None, None
    if not dataset.numeric:
        return accuracy(model, *dataset.test), None
    return None, in_units(dataset.train.preprocessing, evaluate(model, *dataset.test, task="regression"))


def confused(model: nn.Module, x: Tensor, y: Tensor) -> Matrix | None:
    """Of the examples of each class (rows), how many were given each answer (columns); None if it is no classifier.

    >>> import torch
    >>> confused(nn.Linear(2, 2, bias=False), torch.zeros(2, 2), torch.tensor([0, 0])).tolist()
    [[2, 0], [0, 0]]
    """
    answers = predict(model, x)
    if not classified(answers, y) or not len(y) or int(y.min()) < 0:
        return None
    classes = max(answers.shape[1], int(y.max()) + 1)
    table = np.zeros((classes, classes), dtype=np.int64)
    np.add.at(table, (y.numpy(), answers.argmax(1).numpy()), 1)
    return table


def per_class(matrix: Matrix) -> tuple[ClassAccuracy, ...]:
    """How the model does on each class that there are examples of."""
    return tuple(
        ClassAccuracy(number=number, examples=int(row.sum()), accuracy=float(row[number] / row.sum()))
        for number, row in enumerate(matrix)
        if row.sum()
    )


def shown(matrix: Matrix) -> tuple[tuple[int, ...], ...] | None:
    """The table as it is kept; None if it is too large to be read."""
    return tuple(tuple(row) for row in matrix.tolist()) if len(matrix) <= MOST_CLASSES else None
