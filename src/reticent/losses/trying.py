"""Trying a loss on made-up rows: whether it takes a model and a batch, or outputs and targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import torch
from torch import nn

from reticent.errors import DataError, ModelError, ReticentError
from reticent.gradients.batches import chosen, size, tensors
from reticent.gradients.probes import made_up
from reticent.gradients.randomness import undisturbed
from reticent.inside import Batch, Loss
from reticent.losses.calling import parted
from reticent.losses.pairing import Paired

Found = TypeVar("Found")


def kinds_of_rows(batch: Batch, probes: Batch | None) -> list[Batch]:
    """The rows to try: public ones, those made up, and those of ones only, as lengths must be."""
    return [rows for rows in (probes, batch, made_up(batch, size(batch), ones=True)) if rows is not None]


def first_answer(model: nn.Module, rows: Sequence[Batch], ask: Callable[[Batch], Found]) -> Found:
    """What is answered for the first rows that the model runs on; the model is left as it was."""
    reasons: list[Exception] = []
    for one in rows:
        with undisturbed(model), torch.no_grad():
            try:
                return ask(one)
            except ReticentError:
                raise
            except Exception as reason:  # whatever a model says to rows that are none
                reasons.append(reason)
    raise explained(reasons[0], rows[0]) from reasons[0]


def explained(reason: Exception, rows: Batch) -> ReticentError:
    """Why a model does not run on rows like the examples, and what may be done about it."""
    try:
        inputs = parted(rows)[0]
    except DataError:
        inputs = rows
    whole = next((part for part in tensors(inputs) if not part.is_floating_point() and not part.is_complex()), None)
    if whole is not None and isinstance(reason, RuntimeError):
        return DataError(
            f"the model does not take inputs of type {whole.dtype}: for images of bytes give x.float() / 255, for "
            f"other numbers x.float(); ids go to an nn.Embedding (from the "
            f"command line, --features hashed-words makes numbers of words). It said: {str(reason).splitlines()[0]}"
        )
    shapes = ", ".join(str(tuple(part.shape[1:])) for part in tensors(inputs))
    said = f"{type(reason).__name__}: {reason}".splitlines()[0]
    return ModelError(
        f"the model does not run on made-up rows with inputs of the shape {shapes} ({said}): make it for such inputs; "
        "if it runs on real rows only, give a few public ones as probes="
    )


def understood(loss: Callable[..., Any], pair: Paired, model: nn.Module, rows: Sequence[Batch]) -> Loss:
    """The loss itself, if it asks the model; else a pair, of all that the model returns or of its logits."""
    reasons: list[Exception] = []
    for batch in rows:
        with undisturbed(model), torch.no_grad(), _watched(model) as asked:
            try:
                loss(model, batch)
                return loss
            except Exception as reason:
                if asked and isinstance(whole := explained(reason, batch), DataError):
                    raise whole from reason
                if asked:
                    return loss  # what it says of these rows is for the check to judge
        for form in (replace(pair, whole=True), pair):
            with undisturbed(model), torch.no_grad():
                try:
                    form.tried(model, batch)
                    return form
                except ReticentError:
                    raise
                except Exception as reason:
                    reasons.append(reason)
    said = f"{type(reasons[0]).__name__}: {reasons[0]}".splitlines()[0]
    raise ModelError(
        f"the loss {pair.name} can be called neither as loss(output, target) nor as loss(model, batch) on made-up rows "
        f"({said}); if it or the model runs on real rows only, give a few public ones as probes="
    ) from reasons[0]


def refuse_one_size(loss: Paired, model: nn.Module, batch: Batch) -> None:
    """Refuse a loss that works for so many rows only: a weight for each place in a batch belongs to nobody."""
    loss.tried(model, batch)
    try:
        loss.tried(model, chosen(batch, torch.arange(size(batch) + 1) % size(batch)))
    except Exception as reason:
        raise ModelError(
            f"{loss.name} works for {size(batch)} rows and not for one more ({str(reason).splitlines()[0]}): weights "
            "belong to classes or labels, not to the rows of a batch"
        ) from reason


@contextmanager
def _watched(model: nn.Module) -> Iterator[list[str]]:
    """A list that is not empty once the model, or a part of it, was called."""
    asked: list[str] = []
    handles = [
        module.register_forward_pre_hook(lambda module, _inputs: asked.append(type(module).__name__))
        for module in model.modules()
    ]
    try:
        yield asked
    finally:
        for handle in handles:
            handle.remove()
