"""Task: what is learned: a model, a loss for each example, and all its parameters as one vector."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from reticent.errors import ModelError
from reticent.inside.diagnostics import Diagnostics
from reticent.inside.store import Batch

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
        self._parameters = trainable
        self.vector = torch.cat([p.detach().reshape(-1) for p in trainable.values()])
        for name, view in self.views(self.vector).items():
            trainable[name].data = view

    def views(self, vector: Tensor) -> dict[str, Tensor]:
        """A vector of the same length, cut and shaped like the parameters, by name."""
        parts = torch.split(vector, [p.numel() for p in self._parameters.values()])
        return {name: part.view(p.shape) for (name, p), part in zip(self._parameters.items(), parts, strict=True)}

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


@dataclass(frozen=True, eq=False)
class Task:
    """A model, its loss for each example, and its parameters as one vector."""

    model: nn.Module
    loss: Loss
    flat: Flat
    max_physical_batch_size: int | None = None
    diagnostics: Diagnostics | None = None
