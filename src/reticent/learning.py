"""The learning curve: how a model does on public examples while it is trained."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from reticent.call import classified
from reticent.evaluating import predict
from reticent.files import replace_file
from reticent.gradients.randomness import at_rest
from reticent.inside import Batch
from reticent.results import Learning
from reticent.results.fields import Fields
from reticent.results.sealing import read_sealed, seal
from reticent.run import Run, Step

POINTS = 20
"""At how many rounds the model is judged, if not said."""
CURVE = "learning.json"


@dataclass(frozen=True)
class _Point:
    """What was seen after a round: how the model did, and what was spent by then, proved and as claimed."""

    value: float
    epsilon: float | None = None
    claimed: float | None = None


class LearningCurve:
    """Judges the model after some of the rounds; with a folder, what it saw before a crash is not forgotten.

    The examples must be public: what they say of the model is printed without noise. `on` says which they are, if not
    validation examples; `priced` asks what was spent by then, too.
    """

    def __init__(
        self,
        batch: Batch | None,
        folder: str | Path | None,
        *,
        points: int = POINTS,
        on: str = "",
        priced: bool = False,
    ):
        self._batch, self._count, self._on, self._priced = batch, points, on, priced
        self._of = "accuracy"
        self._path = None if folder is None else Path(folder) / CURVE
        self._points: dict[int, _Point] | None = None

    def __call__(self, run: Run, step: Step) -> None:
        """Judge the model if it is time to; the last round always is."""
        if self._batch is None:
            return
        if self._points is None:
            self._points = self._before(step.number)
        if step.number * self._count // len(run) == (step.number - 1) * self._count // len(run):
            return
        epsilon, claimed = _spent(run) if self._priced else (None, None)
        self._points[step.number] = _Point(self._judged(run), epsilon, claimed)
        if self._path is not None and (told := self.told()) is not None:
            replace_file(self._path, seal(told.to_json()))

    def told(self) -> Learning | None:
        """The curve so far; None without examples."""
        if self._batch is None:
            return None
        points = sorted((self._before() if self._points is None else self._points).items())
        if not points:
            return None
        return Learning(
            of=self._of,
            points=tuple((at, point.value) for at, point in points),
            on=self._on,
            epsilon=tuple((at, point.epsilon) for at, point in points if point.epsilon is not None),
            claimed=tuple((at, point.claimed) for at, point in points if point.claimed is not None),
        )

    def _before(self, number: int | None = None) -> dict[int, _Point]:
        """What was seen before this round by a process that is gone."""
        if self._path is None or not self._path.exists():
            return {}
        stored = Learning.from_json(Fields(read_sealed(self._path), str(self._path)))
        self._of, epsilon, claimed = stored.of, dict(stored.epsilon), dict(stored.claimed)
        return {
            at: _Point(value, epsilon.get(at), claimed.get(at))
            for at, value in stored.points
            if number is None or at < number
        }

    def _judged(self, run: Run) -> float:
        match self._batch:
            case [Tensor() as x, Tensor() as y]:
                answers = predict(run.model, x)
                if classified(answers, y):
                    return float((answers.argmax(1) == y).double().mean())
        self._of = "loss"
        with at_rest(run.model), torch.no_grad():
            return float(run.loss(run.model, self._batch).double().mean())


def _spent(run: Run) -> tuple[float | None, float | None]:
    """Epsilon if the run had been planned for so many rounds, and what its paper would say; None for what is not."""
    spent, claim = run.spent(), run.plan.claim(run.kept)
    said = None if claim is None or not math.isfinite(claim.epsilon) else claim.epsilon
    return spent if math.isfinite(spent) else None, said
