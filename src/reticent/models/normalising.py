"""Normalising by numbers that are part of the model, but not trained: public from the start, or released and paid for.

What all examples have in common makes every gradient longer and tells no class from another; under a clip norm it
crowds out what does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn

from reticent.errors import ModelError

Layer = TypeVar("Layer", bound=nn.Module)


class PublicNormalise(nn.Module):
    """Subtract and divide by one number a channel.

    >>> PublicNormalise([0.5], [0.25])(torch.ones(1, 1, 1, 1)).item()
    2.0
    """

    mean: Tensor
    std: Tensor

    def __init__(self, mean: Sequence[float] | Tensor, std: Sequence[float] | Tensor, *, dimensions: int = 3):
        super().__init__()
        shape = (-1, *[1] * (dimensions - 1))
        self.register_buffer("mean", torch.as_tensor(mean).reshape(shape))
        self.register_buffer("std", torch.as_tensor(std).reshape(shape))

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean) / self.std


class Centre(nn.Module):
    """Subtracts a mean of the input's own shape.

    >>> Centre((2,))(torch.ones(1, 2))
    tensor([[1., 1.]])
    """

    mean: Tensor

    def __init__(self, shape: tuple[int, ...]):
        super().__init__()
        self.register_buffer("mean", torch.zeros(shape))

    def forward(self, x: Tensor) -> Tensor:
        return x - self.mean


class Fill(nn.Module):
    """Puts a value in the place of every input that is not a number.

    >>> Fill((2,))(torch.tensor([[1.0, float("nan")]]))
    tensor([[1.0000, 0.5000]])
    """

    mean: Tensor

    def __init__(self, shape: tuple[int, ...]):
        super().__init__()
        self.register_buffer("mean", torch.full(shape, 0.5))

    def forward(self, x: Tensor) -> Tensor:
        return torch.where(torch.isnan(x), self.mean, x)


def with_fill(model: nn.Module, inputs: tuple[int, ...]) -> nn.Sequential:
    """The same network with a `Fill` in front, to be filled itself.

    >>> with_fill(nn.Linear(4, 2), (4,))
    Sequential(
      (0): Fill()
      (1): Linear(in_features=4, out_features=2, bias=True)
    )
    """
    layers = list(model) if isinstance(model, nn.Sequential) else [model]
    return nn.Sequential(Fill(inputs), *layers)


def with_statistics(model: nn.Module, inputs: tuple[int, ...]) -> nn.Sequential:
    """The same network with a `PublicNormalise` in front, to be filled; a first GroupNorm gives way to it.

    >>> with_statistics(nn.Sequential(nn.GroupNorm(1, 4, affine=False), nn.Flatten(), nn.Linear(4, 2)), (4, 1, 1))
    Sequential(
      (0): PublicNormalise()
      (1): Flatten(start_dim=1, end_dim=-1)
      (2): Linear(in_features=4, out_features=2, bias=True)
    )
    """
    layers = _layers(model)
    nothing_yet = torch.zeros(inputs[0]), torch.ones(inputs[0])
    return nn.Sequential(
        PublicNormalise(*nothing_yet, dimensions=len(inputs)), *layers[isinstance(layers[0], nn.GroupNorm) :]
    )


def statistics_of(model: nn.Module) -> PublicNormalise:
    """The layer that `with_statistics` put in front."""
    return next(layer for layer in model.children() if isinstance(layer, PublicNormalise))


def fill_of(model: nn.Module) -> Fill | None:
    """The layer that `with_fill` put in front, if it did."""
    first = next(model.children(), None)
    return first if isinstance(first, Fill) else None


def with_centre(model: nn.Module, inputs: tuple[int, ...]) -> nn.Sequential:
    """The same network with a `Centre` in front of its first layer that has weights.

    >>> with_centre(nn.Sequential(nn.Flatten(), nn.Linear(4, 2)), (2, 2))
    Sequential(
      (0): Flatten(start_dim=1, end_dim=-1)
      (1): Centre()
      (2): Linear(in_features=4, out_features=2, bias=True)
    )
    """
    return in_front_of_weights(model, inputs, Centre)


def in_front_of_weights(
    model: nn.Module, inputs: tuple[int, ...], make: Callable[[tuple[int, ...]], nn.Module]
) -> nn.Sequential:
    """The same network with a layer, made for the shape of what it will see, in front of the first that has weights."""
    layers = _layers(model)
    first = next((number for number, layer in enumerate(layers) if any(True for _ in layer.parameters())), None)
    if first is None:
        raise ModelError("a network without weights learns nothing: give it a layer that has some")
    with torch.no_grad():
        seen = nn.Sequential(*layers[:first])(torch.zeros(2, *inputs))
    return nn.Sequential(*layers[:first], make(tuple(seen.shape[1:])), *layers[first:])


def split_at(kind: type[Layer], model: nn.Module) -> tuple[nn.Sequential, Layer]:
    """What comes before the first layer of a kind, and that layer.

    >>> split_at(Centre, nn.Sequential(nn.Flatten(), Centre((2,))))
    (Sequential(
      (0): Flatten(start_dim=1, end_dim=-1)
    ), Centre())
    """
    layers = list(model.children())
    number, found = next((number, layer) for number, layer in enumerate(layers) if isinstance(layer, kind))
    return nn.Sequential(*layers[:number]), found


def _layers(model: nn.Module) -> list[nn.Module]:
    if not isinstance(model, nn.Sequential):
        raise ModelError("normalising needs an nn.Sequential: it goes in front of one of its layers")
    return list(model)
