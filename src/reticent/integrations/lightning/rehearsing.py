"""Rehearsing: a training_step is asked once, on made-up rows, how its loss is made."""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch
from pytorch_lightning import LightningModule
from torch import Tensor

from reticent.errors import SettingError
from reticent.gradients.batches import size as rows_in
from reticent.gradients.randomness import undisturbed
from reticent.inside import Batch
from reticent.integrations.opacus.listening import (
    Heard,
    Note,
    Turn,
    Value,
    called_model,
    notes_of,
    part_of_batch,
    picked,
    plain,
    wrapped,
)
from reticent.integrations.opacus.numbers import refuse_counted
from reticent.integrations.opacus.program import Program


def rehearsed(module: LightningModule, step: Callable[..., Value], rows: Batch) -> Program:
    """How a module's training_step makes its loss of a batch: asked on made-up rows, which tell nothing."""
    turn, logged = Turn(rows_in(rows), lambda _note: None), []
    given = wrapped(rows, lambda value, path: Note(part_of_batch, path, {}, turn, tuple(value.shape)))
    inner = module.forward

    def forward(*args: Value, **kwargs: Value) -> Value:
        with torch.no_grad():
            answer = inner(*plain(args), **plain(kwargs))
        made = Note(called_model, notes_of(args), notes_of(kwargs), turn, (-1,), torch.is_grad_enabled())
        return wrapped(answer, lambda value, path: made if not path else _part(made, path, value))

    named = {"forward": forward, "log": lambda name, *_, **__: logged.append(name)}
    named["log_dict"] = lambda values, *_, **__: logged.extend(values)
    try:
        module.__dict__.update(named)
        with undisturbed(module):
            found = step(given, 0)
    finally:
        for name in named:
            module.__dict__.pop(name, None)
    loss = found.get("loss") if isinstance(found, dict) else found
    if not isinstance(loss, Heard):
        raise SettingError(
            "training_step gave no loss that is made of self(x) and the batch: say which by protect(loss=)"
        )
    program = Program.of(loss.note)
    refuse_counted(program, turn)
    if program.kind != "mean":
        raise SettingError("the loss of training_step is a sum over the batch: let it be a mean")
    if logged:
        said = ", ".join(map(repr, dict.fromkeys(logged)))
        print(f"reticent: training_step logs {said}, of private examples: that is left out", file=sys.stderr)
    return program


def _part(made: Note, path: tuple[object, ...], value: Tensor) -> Note:
    return Note(picked, (made, *path), {}, made.turn, tuple(value.shape), made.followed)
