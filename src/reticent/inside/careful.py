"""Careful answers: an example that cannot be evaluated counts for nothing, and nobody hears of it.

An error in the round in which a bad record is drawn would tell that it is among the examples. So where answering fails,
the examples are evaluated one by one. What fails for all alike is found before the run, on made-up rows.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, is_dataclass, replace
from typing import ClassVar, cast

import torch
from torch import Tensor, nn

from reticent.errors import ReticentError
from reticent.gradients.batches import chosen, size, tensors
from reticent.inside.drawn import Drawn
from reticent.inside.kinds import fits
from reticent.inside.queries import Parted, Query
from reticent.inside.store import Batch
from reticent.inside.task import Loss, Task

Watch = Callable[[], AbstractContextManager[None]]
"""A guard: what happens inside leaves no trace; if it fails it is as if it had not happened."""


def carefully(query: Query, drawn: Drawn, guard: Watch = nullcontext) -> Tensor:
    """The answer; if something fails, once more with every example by itself."""
    try:
        with guard():
            return _answer(query, drawn)
    except ReticentError:
        raise  # what our own code refuses is no single record's doing
    except Exception:
        asked: object = query
        task = getattr(asked, "task", None)
        if not isinstance(task, Task) or not is_dataclass(asked) or isinstance(asked, type):
            raise
        if task.diagnostics is not None:
            task.diagnostics.again()
        one_by_one = replace(task, loss=OneByOne(task.loss, guard))
        alone = cast("Query", replace(asked, task=one_by_one))
        with guard():
            return _answer(alone, drawn)


def _answer(query: Query, drawn: Drawn) -> Tensor:
    """What may be added up over the parts of a draw."""
    return query.part(drawn) if fits(query, Parted) else query.answer(drawn)


@dataclass(frozen=True, eq=False)
class OneByOne:
    """A loss that evaluates each example by itself; one that fails has a loss of zero, and so a gradient of zero."""

    loss: Loss
    guard: Watch = nullcontext
    alone: ClassVar[bool] = True
    """No plan is made for it: to tell of one would tell of a bad record."""

    def __call__(self, model: nn.Module, batch: Batch) -> Tensor:
        """One number for each example."""
        # Under vmap all rows would fail together: to look at a value ends it, and a loop over the examples is taken.
        next(tensors(batch)).reshape(-1)[0].item()
        rows = [chosen(batch, torch.tensor([row])) for row in range(size(batch))]
        return torch.cat([self._alone(model, row) for row in rows])

    def _alone(self, model: nn.Module, row: Batch) -> Tensor:
        try:
            with self.guard():  # one that fails halfway leaves nothing for the next
                return self.loss(model, row)
        except ReticentError:
            raise
        except Exception:
            trained = [p for p in model.parameters() if p.requires_grad]
            return torch.stack([p.reshape(-1)[:1].sum() * 0.0 for p in trained]).sum().reshape(1)
