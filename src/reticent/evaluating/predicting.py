"""Predicting: a model's answers for examples in any form that it can be trained on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from reticent.errors import DataError
from reticent.gradients.batches import map_tensors
from reticent.gradients.randomness import at_rest
from reticent.inside import Batch, Store, Tabular, readable
from reticent.inside.forms import padding
from reticent.inside.store import Storable
from reticent.losses.calling import TARGETS, called, logits_of, parted
from reticent.losses.heads import head_loss
from reticent.losses.masks import whole_masks


def predict(model: nn.Module, x: Any, *, batch_size: int = 1024) -> Tensor:
    """A model's answers for `x`, in evaluation mode, `batch_size` at a time; targets that are there are left out.

    >>> predict(nn.Identity(), [[1.0, 2.0], [3.0, 4.0]])
    tensor([[1., 2.],
            [3., 4.]])
    """
    return torch.cat([output for output, _ in answered(model, x, batch_size)])


def in_rows(x: Any) -> Any:
    """A list of tensors or arrays, one for each example, as one array; anything else as it is.

    >>> in_rows([torch.ones(2), torch.zeros(2)])
    tensor([[1., 1.],
            [0., 0.]])
    """
    if not isinstance(x, list) or not x or not all(isinstance(part, Tensor | np.ndarray) for part in x):
        return x
    shapes = sorted({tuple(part.shape) for part in x})
    if len(shapes) == 1:
        return torch.stack([torch.as_tensor(part) for part in x])
    if len({shape[:1] for shape in shapes}) == 1 and len({len(shape) for shape in shapes}) > 1:
        return x  # columns with their targets
    padded = padding(torch.as_tensor(x[0])[None], "x")
    raise DataError(
        f"the examples of the list have different shapes, such as {shapes[0]} and {shapes[-1]}: bring them to the one "
        "that the model was trained with" + (f"; sequences, by predict({padded})" if padded else "")
    )


def answers(model: nn.Module, x: Any, y: Any = None, *, batch_size: int = 1024) -> tuple[Tensor, Tensor]:
    """A model's answers with the targets, from two arguments or from examples that hold both."""
    if y is not None:
        outputs = predict(model, x, batch_size=batch_size)
        targets = _single(y)
    else:
        pairs = list(answered(model, x, batch_size))
        found = [target for _, target in pairs if isinstance(target, Tensor)]
        if len(found) < len(pairs):
            raise DataError("there are no targets to compare with: give evaluate(x, y), or examples that hold both")
        outputs, targets = torch.cat([output for output, _ in pairs]), torch.cat(found)
    if len(outputs) != len(targets):
        raise DataError(f"{len(outputs)} inputs but {len(targets)} targets: give one target for each input")
    head = head_loss(model)
    return (outputs, targets) if head is None else head.aligned(outputs, targets)


def answered(model: nn.Module, x: Any, batch_size: int) -> Iterator[tuple[Tensor, Batch]]:
    """The answers batch by batch, each with its targets if there are any."""
    head, first = head_loss(model), next(model.parameters(), None)
    device = torch.device("cpu") if first is None else first.device
    store = _store(model, x)
    with at_rest(model), torch.no_grad(), whole_masks():
        for start in range(0, len(store), batch_size):
            batch = store.take(np.arange(start, min(start + batch_size, len(store))))
            inputs, target = _apart(batch)
            if head is not None and target is not None:
                inputs, target = head.apart(model, batch)
            yield logits_of(called(model, map_tensors(inputs, lambda part: part.to(device)))).cpu(), target


def _store(model: nn.Module, x: Any) -> Store:
    """Tuples, dicts and datasets as they are trained on; anything else is one array of inputs."""
    parts = isinstance(x, list) and bool(x) and (isinstance(x[0], tuple | dict) or hasattr(x[0], "shape"))
    whole = parts or isinstance(x, tuple | Mapping | Tabular | Storable) or _is_dataset(x)
    return readable(x if whole else (x,), model)[0]


def _is_dataset(x: Any) -> bool:
    array = isinstance(x, list) or hasattr(x, "shape") or hasattr(x, "to_numpy")
    return (not array or hasattr(x, "__getitems__")) and hasattr(x, "__getitem__") and hasattr(x, "__len__")


def _single(y: Any) -> Tensor:
    store = readable((y,), nn.Identity())[0]
    (targets,) = store.take(np.arange(len(store)))
    return targets  # type: ignore[no-any-return]


def _apart(batch: Batch) -> tuple[Batch, Batch | None]:
    """Inputs and targets; a single array and a dict without targets are all inputs."""
    if isinstance(batch, Mapping) and not any(name in batch for name in TARGETS):
        return batch, None
    if isinstance(batch, tuple | list) and len(batch) == 1:
        return batch[0], None
    return (batch, None) if isinstance(batch, Tensor) else parted(batch)
