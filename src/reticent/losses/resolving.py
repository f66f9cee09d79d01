"""Resolving: whatever loss was given, or none, as one number for each example."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from torch import Tensor, nn

from reticent.errors import SettingError
from reticent.inside import Batch, Loss
from reticent.losses.basic import cross_entropy
from reticent.losses.calling import called, logits_of, parted
from reticent.losses.choosing import choose
from reticent.losses.heads import HeadLoss, head_loss, inner
from reticent.losses.known import by_name
from reticent.losses.pairing import Paired
from reticent.losses.trying import first_answer, kinds_of_rows, refuse_one_size, understood
from reticent.losses.unreduced import known_loss, own_loss, refuse_parameters

LossLike: TypeAlias = str | Callable[..., Any] | None
"""A name, a loss of torch, any (output, target) or (model, batch) callable; None chooses by what is public."""


def per_example(loss: LossLike, model: nn.Module, rows: Batch, probes: Batch | None = None) -> Loss:
    """The loss as (model, batch) -> one number for each example, understood on made-up (or public) rows alone.

    >>> import torch
    >>> rows = torch.zeros(4, 3), torch.zeros(4)
    >>> per_example("huber", nn.Linear(3, 1), rows).name
    'huber'
    >>> per_example(lambda output, target: (output[:, 0] - target).square(), nn.Linear(3, 1), rows).whole
    True
    """
    if isinstance(loss, Paired):
        return loss
    tried = kinds_of_rows(rows, probes)
    if loss is None:
        loss, _ = choose_loss(model, rows, probes)
    if isinstance(loss, str):
        loss = by_name(loss)
    if not callable(loss):
        raise SettingError(f"the loss is a {type(loss).__name__}: give a name, a loss of torch or a function")
    refuse_parameters(loss, model)
    known = known_loss(loss, model)
    found = understood(loss, own_loss(loss, name_of(loss)), model, tried) if known is None else known
    if isinstance(found, Paired):
        first_answer(model, tried, lambda batch: refuse_one_size(found, model, batch))
    return found


def choose_loss(model: nn.Module, rows: Batch, probes: Batch | None = None) -> tuple[str | HeadLoss, str]:
    """The loss for a model where none was given, by its name or by the head that it says it has, and why.

    >>> import torch
    >>> choose_loss(nn.Linear(3, 2), (torch.zeros(4, 3), torch.ones(4, 2, dtype=torch.bool)))
    ('bce', 'the targets are yes or no, one for each output')
    """

    found = head_loss(model)
    if found is not None:
        first_answer(model, kinds_of_rows(rows, probes), partial(found, model))
        return found, f"the model is a {type(inner(model)).__name__}"

    def ask(batch: Batch) -> tuple[Tensor, Any]:
        inputs, target = parted(batch)
        return logits_of(called(model, inputs)), target

    return choose(*first_answer(model, kinds_of_rows(rows, probes), ask))


def name_of(loss: object) -> str:
    """What to call a loss.

    >>> name_of(nn.MSELoss()), name_of(nn.functional.mse_loss)
    ('MSELoss', 'mse_loss')
    """
    inner = getattr(loss, "func", loss)
    return str(getattr(inner, "__name__", type(inner).__name__))


def about_loss(loss: Loss) -> dict[str, str | None]:
    """A loss in plain words: its name, what is learned by it, and what the outputs stand for, where that is known."""
    if isinstance(loss, Paired | HeadLoss):
        return loss.about()
    return {"name": name_of(loss), "task": "classes" if loss is cross_entropy else None, "answers": None}
