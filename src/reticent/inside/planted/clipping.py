"""Bugs of clipping: what one example may weigh."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor

from reticent.gradients import norms, norms_and_sum
from reticent.inside.drawn import Drawn
from reticent.inside.planted.bug import Code, bug
from reticent.inside.queries import GradientSum


@bug(GradientSum, "_weigh", "gradients are not clipped")
def _no_clip(_right: Code) -> Code:
    return lambda _self, found: torch.ones_like(found)


@bug(GradientSum, "_weigh", "the clip factor uses the square of the norm")
def _clip_by_square(_right: Code) -> Code:
    return lambda self, found: (self.settings.max_grad_norm / found.square()).clamp(max=1.0)


@bug(GradientSum, "answer", "the mean of the batch is clipped, not each example")
def _clip_batch_mean(_right: Code) -> Code:
    def answer(self: GradientSum, drawn: Drawn) -> Tensor:
        total, limit = _unclipped(self, drawn), self.settings.max_grad_norm * max(len(drawn.draw._index), 1)
        return total * min(1.0, limit / max(float(total.norm()), 1e-12))

    return answer


@bug(GradientSum, "answer", "every layer is clipped to the whole bound")
def _clip_per_layer(_right: Code) -> Code:
    def answer(self: GradientSum, drawn: Drawn) -> Tensor:
        task, total = self.task, torch.zeros_like(self.task.flat.vector)
        views, trainable = task.flat.views(total), dict(task.model.named_parameters())
        for batch in drawn.batches():
            for name in views:
                with _frozen([p for other, p in trainable.items() if other != name]):
                    norms_and_sum(task.model, task.loss, batch, self._weigh, into={name: views[name]})
        return total

    return answer


@bug(GradientSum, "answer", "the norm forgets the biases")
def _forgotten_bias(_right: Code) -> Code:
    def answer(self: GradientSum, drawn: Drawn) -> Tensor:
        task, total = self.task, torch.zeros_like(self.task.flat.vector)
        for batch in drawn.batches():
            with _frozen([p for p in task.model.parameters() if p.ndim == 1]):
                weights = self.bound.weights(norms(task.model, task.loss, batch), self.settings)
            norms_and_sum(task.model, task.loss, batch, partial(_given, weights), into=task.flat.views(total))
        return total

    return answer


@contextmanager
def _frozen(parameters: list[torch.nn.Parameter]) -> Iterator[None]:
    free = [p for p in parameters if p.requires_grad]
    for parameter in free:
        parameter.requires_grad_(False)
    yield
    for parameter in free:
        parameter.requires_grad_(True)


def _given(weights: Tensor, _norms: Tensor) -> Tensor:
    return weights


def _unclipped(query: GradientSum, drawn: Drawn) -> Tensor:
    task, total = query.task, torch.zeros_like(query.task.flat.vector)
    for batch in drawn.batches():
        norms_and_sum(task.model, task.loss, batch, torch.ones_like, into=task.flat.views(total))
    return total
