"""Optimizers and schedules by name."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from torch import nn
from torch.optim import SGD, Adam, Optimizer
from torch.optim.lr_scheduler import LambdaLR, LRScheduler

from reticent.errors import ModelError, UnknownName


def make_optimizer(
    name: str | Callable[[Any], Optimizer], model: nn.Module, lr: float, momentum: float | None
) -> Optimizer:
    """The optimizer of this name, or what makes one, on the trainable parameters."""
    trainable = [p for p in model.parameters() if p.requires_grad]
    if not trainable:
        raise ModelError(
            f"{type(model).__name__} has no parameter that is trainable: give a model with some, or set requires_grad "
            "on what is to be learned"
        )
    if not isinstance(name, str):
        return name(model.parameters())
    match name:
        case "sgd":
            return SGD(trainable, lr=lr, momentum=momentum or 0.0)
        case "adam":
            return Adam(trainable, lr=lr)
    raise UnknownName("optimizer", name, ["adam", "sgd"])


def make_scheduler(name: str | None, optimizer: Optimizer, rounds: int) -> LRScheduler | None:
    """A learning rate that falls to 0 over so many kept updates: "linear" or "cosine"; None keeps it as it is."""
    shapes: dict[str, Callable[[float], float]] = {
        "linear": lambda done: 1 - done,
        "cosine": lambda done: (1 + math.cos(math.pi * done)) / 2,
    }
    if name is None or name == "constant":
        return None
    if name not in shapes:
        raise UnknownName("lr_schedule", name, [*shapes, "constant"])
    shape = shapes[name]
    return LambdaLR(optimizer, lambda step: shape(min(step / rounds, 1.0)))
