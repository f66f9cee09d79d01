"""Look again: at rounds chosen by the key, whether real examples are as apart as made-up ones were."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import torch

from reticent.errors import ReticentError
from reticent.gradients import gradients_are_own, losses_are_own, must_not_be_released
from reticent.gradients.batches import chosen, size
from reticent.gradients.grouped import rows_each
from reticent.inside.careful import Watch
from reticent.inside.drawn import Drawn
from reticent.inside.queries import Query
from reticent.inside.rounding import at_once
from reticent.inside.task import Task

CHANCE = 1 / 50
"""Of a query to be looked at again; the first is, always. An error lasts 50 rounds on average, at 2 % of the cost."""
ROWS, ALONE = 64, 8
"""So many of the examples drawn are looked at, and so many of these by themselves."""


def look_again(query: Query, drawn: Drawn, rng: np.random.Generator, guard: Watch = nullcontext) -> None:
    """Refuse to go on if an example's loss or gradient depends on the others; nothing is told of the examples.

    A private check: that a run ends so tells one bit about its data, and that its model must not be released.
    """
    task = getattr(query, "task", None)
    if not isinstance(task, Task):
        return
    try:
        with guard():
            apart = _apart(task, drawn, rng)
    except ReticentError:
        raise
    except Exception:  # an example that cannot be read or evaluated, which counts for nothing
        return
    if not apart:
        raise must_not_be_released()


def _apart(task: Task, drawn: Drawn, rng: np.random.Generator) -> bool:
    batch = drawn.a_part(rng)
    if batch is None:
        return True
    rows = chosen(batch, torch.arange(min(size(batch), max(2, ROWS // rows_each(batch)))))
    count = size(rows)
    half = torch.from_numpy(rng.random(count) < 0.5)
    some = torch.from_numpy(rng.choice(count, min(count, ALONE), replace=False))
    limit = at_once(count, task.max_physical_batch_size, rows_each(batch))
    return gradients_are_own(task.model, task.loss, rows, half, max_physical_batch_size=limit) and losses_are_own(
        task.model, task.loss, rows, some
    )
