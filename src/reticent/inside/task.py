"""Task: what is learned: a model, a loss for each example, and all its parameters as one vector."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from reticent.errors import ModelError, require
from reticent.gradients import losses_of
from reticent.gradients.batches import chunks, size
from reticent.gradients.grouped import rows_each
from reticent.inside.diagnostics import Diagnostics
from reticent.inside.kept import Pages
from reticent.inside.sharding import refuse_wrapped
from reticent.inside.store import Batch
from reticent.inside.views import Views

COMPANY = 64
"""Among so many others a row is seen at least, before the run."""

Loss = Callable[[nn.Module, Batch], Tensor]
"""A loss: (model, batch) -> one number for each example."""


class Flat:
    """The trainable parameters of a module as views of one vector: noise is one call, a snapshot one copy.

    The module stays as it was, with the same parameter objects; only their storage is shared.

    >>> net = nn.Linear(2, 1)
    >>> flat = Flat(net)
    >>> _ = flat.vector.fill_(0.5)
    >>> net.bias.item()
    0.5
    """

    def __init__(self, model: nn.Module):
        trainable = {name: p for name, p in model.named_parameters() if p.requires_grad}
        if not trainable:
            raise ModelError("no parameter of the model is trainable: set requires_grad on what is to be learned")
        refuse_lazy(model)
        kinds = {(p.dtype, p.device) for p in trainable.values()}
        if len(kinds) > 1:
            found = ", ".join(sorted(f"{dtype} on {device}" for dtype, device in kinds))
            raise ModelError(f"the trainable parameters differ in type or device ({found}): bring them to one")
        [(dtype, _)] = kinds
        if dtype not in (torch.float32, torch.float64):
            raise ModelError(
                f"the trainable parameters are {dtype}: sums of gradients would be rounded so coarsely that one "
                "example moves them by more than its bound. Call .float() on the model; autocast inside it is fine"
            )
        refuse_wrapped(model)
        self._parameters = trainable
        self._frozen = {name: p for name, p in model.named_parameters() if not p.requires_grad}
        self._tables = [_table(model, name) for name in trainable]
        self.vector = torch.cat([p.detach().reshape(-1) for p in trainable.values()])
        self.kept = Pages()
        for name, view in self.views(self.vector).items():
            trainable[name].data = view

    def views(self, vector: Tensor) -> dict[str, Tensor]:
        """A vector of the same length, cut and shaped like the parameters, by name."""
        parts = torch.split(vector, [p.numel() for p in self._parameters.values()])
        return {name: part.view(p.shape) for (name, p), part in zip(self._parameters.items(), parts, strict=True)}

    def refuse_moved(self) -> None:
        """Refuse to go on if a parameter has left the vector: a dropped candidate would stay in the model."""
        views = torch.split(self.vector, [p.numel() for p in self._parameters.values()])
        for (name, p), view, (table, key) in zip(self._parameters.items(), views, self._tables, strict=True):
            if table.get(key) is not p or p.data_ptr() != view.data_ptr() or not p.is_contiguous():
                raise ModelError(
                    f"parameter {name!r} is no longer where the run put it: the model was moved or cast (model.to, "
                    "memory_format), given other parameters, or to a second run. A dropped candidate would stay in it. "
                    "Move the model first and make the run then; a model belongs to one run at a time"
                )
            if not p.requires_grad:
                raise ModelError(f"parameter {name!r} was frozen after the run was made: make a new run to train less")
        for name, p in self._frozen.items():
            if p.requires_grad:
                raise ModelError(f"parameter {name!r} was unfrozen after the run was made: make a new run to train it")

    def named(self) -> Iterator[tuple[str, nn.Parameter]]:
        """The parameters by name, in the order of the vector."""
        return iter(self._parameters.items())

    def frozen(self) -> Iterator[nn.Parameter]:
        """The model's parameters that are not trained."""
        return iter(self._frozen.values())

    def parameters(self) -> Iterator[nn.Parameter]:
        """The parameters themselves, in the order of the vector."""
        return iter(self._parameters.values())

    def set_grad(self, direction: Tensor) -> None:
        """Put a direction where a torch optimizer looks for it: in the parameters' `.grad`."""
        for name, view in self.views(direction).items():
            self._parameters[name].grad = view

    @contextmanager
    def moved_to(self, place: Tensor) -> Iterator[None]:
        """The parameters are at `place` inside, and back where they were afterwards."""
        here = self.vector.clone()
        self.vector.copy_(place)
        try:
            yield
        finally:
            self.vector.copy_(here)

    def clear(self) -> None:
        """Leave no gradient behind on the user's parameters."""
        for parameter in self._parameters.values():
            parameter.grad = None

    def shapes(self) -> dict[str, list[int]]:
        """The shape of every parameter, by name."""
        return {name: list(p.shape) for name, p in self._parameters.items()}


def refuse_lazy(model: nn.Module) -> None:
    """Refuse a module whose weights are not there yet: nothing can be counted, copied or bounded of it."""
    lazy = next((name for name, p in model.named_parameters() if isinstance(p, UninitializedParameter)), None)
    if lazy is not None:
        raise ModelError(
            f"the shape of {lazy!r} is not known yet, since its module is lazy: send one made-up batch through the "
            "model first, as in model(torch.zeros(1, ...)), and make the optimizer after that"
        )


def _table(model: nn.Module, name: str) -> tuple[dict[str, nn.Parameter | None], str]:
    """Where a module keeps the parameter of this name."""
    path, _, key = name.rpartition(".")
    return model.get_submodule(path)._parameters, key


@dataclass(frozen=True, eq=False)
class Task:
    """A model, its loss for each example, and its parameters as one vector."""

    model: nn.Module
    loss: Loss
    flat: Flat
    max_physical_batch_size: int | None = None
    diagnostics: Diagnostics | None = None
    views: Views | None = None
    """Which views of each example are looked at in its place."""

    def __post_init__(self) -> None:
        limit = self.max_physical_batch_size
        require(limit is None or limit >= 1, f"max_physical_batch_size must be 1 or more, not {limit}")

    @property
    def together(self) -> int:
        """Among so many rows a row is checked to be the same as alone: no more are evaluated at once by `losses`."""
        return min(max(COMPANY, self.max_physical_batch_size or 0), 4 * COMPANY)

    def losses(self, batch: Batch) -> Tensor:
        """The loss of each example, for sums in which it must be its own: gradients are followed, this is checked."""
        parts = chunks(batch, size(batch), max(1, self.together // rows_each(batch)))
        return torch.cat([self.losses_in_company(part) for part in parts])

    def losses_in_company(self, batch: Batch) -> Tensor:
        """The same of all at once, for answers that are safe whatever one example does to the others."""
        return losses_of(self.model, self.loss, batch)
