"""Centring: take a known mean away from what the first layer with weights sees.

What all examples have in common makes every gradient longer and tells no class from another; under a clip norm it
crowds out what does.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from reticent.errors import ModelError


class Centre(nn.Module):
    """Subtracts a mean that is part of the model, but not trained.

    >>> Centre((2,))(torch.ones(1, 2))
    tensor([[1., 1.]])
    """

    mean: Tensor

    def __init__(self, shape: tuple[int, ...]):
        super().__init__()
        self.register_buffer("mean", torch.zeros(shape))

    def forward(self, x: Tensor) -> Tensor:
        return x - self.mean


def with_centre(model: nn.Module, inputs: tuple[int, ...]) -> nn.Sequential:
    """The same network with a `Centre` in front of its first layer that has weights.

    >>> with_centre(nn.Sequential(nn.Flatten(), nn.Linear(4, 2)), (2, 2))
    Sequential(
      (0): Flatten(start_dim=1, end_dim=-1)
      (1): Centre()
      (2): Linear(in_features=4, out_features=2, bias=True)
    )
    """
    if not isinstance(model, nn.Sequential):
        raise ModelError("centring needs an nn.Sequential: it goes in front of the first layer that has weights")
    layers = list(model)
    first = next(number for number, layer in enumerate(layers) if any(True for _ in layer.parameters()))
    with torch.no_grad():
        seen = nn.Sequential(*layers[:first])(torch.zeros(1, *inputs))
    return nn.Sequential(*layers[:first], Centre(tuple(seen.shape[1:])), *layers[first:])


def split_at_centre(model: nn.Module) -> tuple[nn.Sequential, Centre]:
    """What comes before the centre of a network, and the centre."""
    layers = list(model.children())
    number = next(number for number, layer in enumerate(layers) if isinstance(layer, Centre))
    centre = layers[number]
    assert isinstance(centre, Centre)
    return nn.Sequential(*layers[:number]), centre
