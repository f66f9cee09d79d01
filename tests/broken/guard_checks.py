"""Fast checks that a forward pass leaves nothing behind, wherever it can write; each mutant makes one of them fail."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from reticent.errors import ModelError
from reticent.inside import Flat
from reticent.inside.careful import OneByOne
from reticent.inside.guard import Guard


class Writes(nn.Module):
    """A layer, many places to keep something, and a forward pass that writes into one of them."""

    newest: object = None

    def __init__(self, write: Callable[[Writes, Tensor], None]) -> None:
        super().__init__()
        self.layer, self.write = nn.Linear(2, 2), write
        self.register_buffer("mean", torch.zeros(2))
        self.nested: dict[str, list[Tensor]] = {"log": [torch.zeros(2)]}
        self.loose = [nn.BatchNorm1d(2)]
        self.sums, self.state, self.coins = np.zeros(2), SimpleNamespace(last=None), torch.Generator()

    def forward(self, x: Tensor) -> Tensor:
        self.write(self, x.detach())
        return self.layer(x)


def _found(write: Callable[[Writes, Tensor], None], loss: object = None) -> None:
    model = Writes(write)
    guard = Guard(model, loss, Flat(model).vector)
    try:
        with guard():
            model(torch.rand(4, 2) + 1)
    except ModelError:
        return
    raise AssertionError("a private value stayed where a forward pass had put it")


def attributes_are_looked_at() -> None:
    """A new attribute, and another value of an old one."""
    _found(lambda model, x: setattr(model, "seen", x))
    _found(lambda model, x: setattr(model, "sums", x.numpy()))


def containers_are_looked_into() -> None:
    """A list in a dict: what it holds, and a tensor in it."""
    _found(lambda model, x: model.nested["log"].append(x))
    _found(lambda model, x: model.nested["log"][0].copy_(x[0]))


def objects_are_looked_into() -> None:
    """An attribute of an object, and a module that is not registered."""
    _found(lambda model, x: setattr(model.state, "last", x))
    _found(lambda model, x: model.loose[0](x))


def arrays_are_compared() -> None:
    """An array has no version counter."""

    def add(model: Writes, x: Tensor) -> None:
        model.sums += x.sum(0).numpy()

    _found(add)


def generators_are_compared() -> None:
    """How often a generator was asked tells how many examples there were."""
    _found(lambda model, x: torch.rand(len(x), generator=model.coins).unbind())


def classes_are_looked_at() -> None:
    """An attribute of the module's class."""
    _found(lambda model, x: setattr(type(model), "newest", x))


def functions_are_looked_into() -> None:
    """The closure and the defaults of a function that a module holds."""
    seen: list[Tensor] = []
    _found(lambda _model, x: seen.append(x))
    _found(lambda _model, x, kept=[]: kept.append(x))


def gradients_are_not_watched() -> None:
    """A hook of a parameter, and one of all modules, in the backward pass."""
    for hook in (_of_a_parameter, _of_all_modules):
        seen: list[object] = []
        model = nn.Linear(2, 2)
        handle = hook(model, seen)
        try:
            with Guard(model)():
                model(torch.rand(4, 2, requires_grad=True)).sum().backward()
        except ModelError:
            continue
        finally:
            handle.remove()
        raise AssertionError("a private gradient stayed with a hook")


def _of_a_parameter(model: nn.Module, seen: list[object]) -> RemovableHandle:
    return next(model.parameters()).register_hook(lambda gradient: seen.append(gradient))


def _of_all_modules(_model: nn.Module, seen: list[object]) -> RemovableHandle:
    return nn.modules.module.register_module_full_backward_hook(lambda _module, _given, out: seen.append(out))


class _Remembers:
    last: Tensor | None = None

    def __call__(self, model: nn.Module, x: Tensor) -> Tensor:
        self.last = model(x).sum(1)
        return self.last


def losses_are_looked_at() -> None:
    """The loss is code of the user's, too."""
    model, loss = nn.Linear(2, 2), _Remembers()
    try:
        with Guard(model, loss)():
            loss(model, torch.rand(4, 2))
    except ModelError:
        return
    raise AssertionError("a private value stayed in the loss")


def memory_is_not_exchanged() -> None:
    """Other memory for a trained parameter: the vector that is rolled back would not be the model's."""
    _found(lambda model, x: setattr(model.layer.weight, "data", model.layer.weight.data + x.mean()))


def trained_values_are_compared() -> None:
    """What is written through `.data` counts no version."""
    _found(lambda model, x: model.layer.weight.data.add_(x.mean()))


def frozen_values_are_compared() -> None:
    """So for a buffer."""
    _found(lambda model, x: model.mean.data.copy_(x[0]))


def failing_halfway_tells_nothing() -> None:
    """A record that fails between two notes of the model counts for nothing, and ends no run."""

    def note(model: Writes, x: Tensor) -> None:
        model.seen = x  # type: ignore[assignment]
        if bool((x == 7.0).any()):
            raise ValueError
        del model.seen

    model = Writes(note)
    guard = Guard(model)
    loss = OneByOne(lambda model, x: model(x).sum(1), guard)
    try:
        with guard():
            loss(model, torch.tensor([[1.0, 1.0], [7.0, 7.0]]))
    except ModelError as error:
        raise AssertionError("the run would end in the round in which the record is drawn") from error


CHECKS: list[Callable[[], None]] = [
    attributes_are_looked_at,
    containers_are_looked_into,
    objects_are_looked_into,
    arrays_are_compared,
    generators_are_compared,
    classes_are_looked_at,
    functions_are_looked_into,
    gradients_are_not_watched,
    losses_are_looked_at,
    memory_is_not_exchanged,
    trained_values_are_compared,
    frozen_values_are_compared,
    failing_halfway_tells_nothing,
]
