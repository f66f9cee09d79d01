"""The learning curve: how a model does on public validation examples while it is trained."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from torch import Tensor, nn

from reticent.call import classified, everything
from reticent.checkpoint import replace_file
from reticent.evaluating import predict
from reticent.results import Learning
from reticent.results.fields import Fields, read_json
from reticent.run import Run, Step

POINTS = 20
"""At how many rounds the model is judged."""
CURVE = "learning.json"


class LearningCurve:
    """Judges the model after some of the rounds; with a folder, what it saw before a crash is not forgotten.

    The examples must be public: what they say of the model is printed without noise.
    """

    def __init__(self, validation: object, model: nn.Module, folder: str | Path | None):
        self._batch = None if validation is None else everything(validation, model)
        self._of = "accuracy"
        self._path = None if folder is None else Path(folder) / CURVE
        self._points: dict[int, float] | None = None

    def __call__(self, run: Run, step: Step) -> None:
        """Judge the model if it is time to; the last round always is."""
        if self._batch is None:
            return
        if self._points is None:
            self._points = self._before(step.number)
        if step.number * POINTS // len(run) == (step.number - 1) * POINTS // len(run):
            return
        self._points[step.number] = self._judged(run)
        if self._path is not None and (told := self.told()) is not None:
            replace_file(self._path, json.dumps(told.to_json()).encode())

    def told(self) -> Learning | None:
        """The curve so far; None without validation examples."""
        if self._batch is None:
            return None
        points = self._before() if self._points is None else self._points
        return Learning(of=self._of, points=tuple(sorted(points.items()))) if points else None

    def _before(self, number: int | None = None) -> dict[int, float]:
        """What was seen before this round by a process that is gone."""
        if self._path is None or not self._path.exists():
            return {}
        stored = Learning.from_json(Fields(read_json(self._path), str(self._path)))
        self._of = stored.of
        return {at: value for at, value in stored.points if number is None or at < number}

    def _judged(self, run: Run) -> float:
        match self._batch:
            case [Tensor() as x, Tensor() as y]:
                answers = predict(run.model, x)
                if classified(answers, y):
                    return float((answers.argmax(1) == y).double().mean())
        self._of, training = "loss", run.model.training
        run.model.eval()
        try:
            with torch.no_grad():
                return float(run.loss(run.model, self._batch).double().mean())
        finally:
            run.model.train(training)
