"""Calling: which part of a batch a model is given, how, and which part of its answer is compared with the targets."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from reticent.errors import DataError, ModelError
from reticent.inside import Batch

TARGETS = ("labels", "label", "targets", "target", "y")
"""Names of the targets in a batch that is a dict; the first that is there counts."""


def parted(batch: Batch) -> tuple[Batch, Batch]:
    """The inputs and the targets of a batch: the last of a tuple, or what is called so in a dict.

    >>> parted((1, 2, 3)), parted({"words": 1, "mask": 2, "labels": 3})
    (((1, 2), 3), ({'words': 1, 'mask': 2}, 3))
    """
    if isinstance(batch, Mapping):
        name = next((name for name in TARGETS if name in batch), None)
        if name is not None and len(batch) > 1:
            return {key: part for key, part in batch.items() if key != name}, batch[name]
        found = f"a dict of {', '.join(map(repr, batch))}"
    elif isinstance(batch, tuple | list):
        if len(batch) > 1:
            *inputs, target = batch
            return inputs[0] if len(inputs) == 1 else tuple(inputs), target
        found = "a single array"
    else:
        found = "a single array"
    raise DataError(
        f"there is nothing to compare the model's outputs with: the examples are {found}. Give (x, y), a dict with "
        f"one of {', '.join(map(repr, TARGETS))}, or a loss of the form (model, batch)"
    )


def called(model: nn.Module, inputs: Batch) -> Any:
    """What a model answers: several inputs become its arguments where it takes as many, a dict those of the names.

    >>> called(nn.Identity(), {"x": 3})
    3
    """
    if isinstance(inputs, Tensor):
        return model(inputs)
    takes = inspect.signature(model.forward)
    if isinstance(inputs, Mapping):
        if _binds(takes, **inputs):
            return model(**inputs)
        return model(next(iter(inputs.values())) if len(inputs) == 1 else inputs)
    if isinstance(inputs, tuple | list) and _binds(takes, *inputs):
        return model(*inputs)
    return model(inputs)


def _binds(takes: inspect.Signature, *places: object, **names: object) -> bool:
    try:
        takes.bind(*places, **names)
    except TypeError:
        return False
    return True


def logits_of(answer: Any) -> Tensor:
    """The one tensor of an answer that targets are compared with; a loss in it is a mean over the batch, and ignored.

    >>> import torch
    >>> logits_of({"loss": torch.tensor(0.3), "logits": torch.ones(2, 1)}).shape
    torch.Size([2, 1])
    """
    if isinstance(answer, Tensor):
        return answer
    if isinstance(answer, Mapping):
        parts = {str(name): part for name, part in answer.items()}
    elif isinstance(answer, tuple | list) and not hasattr(answer, "_fields"):
        parts = {str(place): part for place, part in enumerate(answer)}
    else:
        parts = {name: getattr(answer, name) for name in ("logits",) if hasattr(answer, name)}
    tensors = {name: part for name, part in parts.items() if isinstance(part, Tensor) and name != "loss"}
    if "logits" in tensors:
        return tensors["logits"]
    if len(tensors) == 1:
        return next(iter(tensors.values()))
    raise ModelError(
        f"the model answers with a {type(answer).__name__} of {', '.join(tensors) or 'no tensors'}, and none is called "
        "'logits': let it return one tensor, or give a loss of the form (model, batch)"
    )
