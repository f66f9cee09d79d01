"""Checks of released statistics: no example moves them by more than the noise is scaled to."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

import reticent.inside.labelled_rows as labelled_rows
from reticent.inside import ClassSums, Clip, Flat, RoundSettings, Statistics, Task, as_store
from reticent.inside.drawn import Drawn
from reticent.inside.draws import Draw, Everyone


def no_example_moves_the_statistics_further_than_is_charged() -> None:
    """Those of least squares."""
    _nobody_moves_more_than_is_charged(Statistics())


def no_example_moves_the_sums_of_classes_further_than_is_charged() -> None:
    """Rows and counts together."""
    _nobody_moves_more_than_is_charged(ClassSums())


def _nobody_moves_more_than_is_charged(rule: Statistics | ClassSums) -> None:
    """Long rows, labels that are none, and everybody at once."""
    rng = torch.Generator().manual_seed(4)
    x, y = torch.randn(12, 5, generator=rng), torch.arange(12) % 3
    x[::2] *= 40
    y[3] = 9
    model = nn.Linear(5, 3)
    task = Task(model, lambda net, batch: net(batch[0])[:, 0], Flat(model))
    now = RoundSettings(12, 12, 0.5, 1.0)
    query = rule(task, Clip(), now)

    def answer(index: np.ndarray) -> torch.Tensor:
        return query.answer(Drawn(Draw(index, Everyone(), now), np.random.default_rng(0), {}, as_store((x, y))))

    everybody = answer(np.arange(12))
    moves = [float((everybody - answer(np.delete(np.arange(12), out))).norm()) for out in range(12)]
    assert max(moves) <= query.sensitivity * (1 + 1e-6), "an example moves the statistics by more than is charged"
    assert max(moves) >= 0.99 * query.sensitivity, "no row was cut: the check is too weak"


class _Centre(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x - x.mean(0)


def no_example_moves_the_rows_of_others() -> None:
    """Layers in front of the last one that mix rows, which a loss need not show."""
    x = torch.randn(9, 5, generator=torch.Generator().manual_seed(5))
    far = torch.cat([x[:-1], x[-1:] + 1e3])
    near, moved = (labelled_rows.each_alone((_Centre(),), rows, 5)[:-1] for rows in (x, far))
    assert torch.equal(near, moved), "one example moves the rows of all others"


CHECKS: list[Callable[[], None]] = [
    no_example_moves_the_statistics_further_than_is_charged,
    no_example_moves_the_sums_of_classes_further_than_is_charged,
    no_example_moves_the_rows_of_others,
]
