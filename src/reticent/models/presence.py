"""A first layer for rows that say which of many things are present, such as hashed words: all others are zero."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from reticent.errors import ModelError


class PresenceLinear(nn.Module):
    """A linear layer on rows of zeros and ones, scaled to length 8, that are given as the places of the ones.

    Places are numbered from 1, each once and rising; 0 fills a row up. It is what `nn.Linear` does with the rows
    written out, in the time that the ones take. Rows of length 1 would leave half of a clipped gradient to the bias.
    `shares`, 1 each if nobody says otherwise, are what the places count before the row is scaled.

    >>> layer = PresenceLinear(3, 2)
    >>> by_hand = 8 * (layer.weight[1] + layer.weight[3]) / 2**0.5 + layer.bias
    >>> torch.allclose(layer(torch.tensor([[0, 1, 3]]))[0], by_hand)
    True
    """

    shares: Tensor

    def __init__(self, buckets: int, classes: int):
        super().__init__()
        self.register_buffer("shares", torch.ones(buckets + 1))
        self.weight = nn.Parameter((torch.rand(buckets + 1, classes) - 0.5) * 2 / buckets**0.5)
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, places: Tensor) -> Tensor:
        there = nn.functional.embedding(places, self.shares[:, None])[..., 0] * (places > 0)
        share = 8 * there / there.square().sum(1, keepdim=True).sqrt().clamp(min=1e-9)
        return nn.functional.embedding_bag(places, self.weight, mode="sum", per_sample_weights=share) + self.bias

    def _load_from_state_dict(self, state: dict[str, Tensor], prefix: str, *others: Any) -> None:
        """Models of before have no shares: all places count alike."""
        state.setdefault(f"{prefix}shares", torch.ones_like(self.shares))
        super()._load_from_state_dict(state, prefix, *others)


def with_presence(network: nn.Module, buckets: int) -> nn.Sequential:
    """The network with its first layer, which must be linear, made for places.

    >>> with_presence(nn.Sequential(nn.Flatten(), nn.Linear(8, 2)), 8)
    Sequential(
      (0): PresenceLinear()
    )
    """
    layers = list(network) if isinstance(network, nn.Sequential) else []
    if len(layers) < 2 or not isinstance(layers[1], nn.Linear):
        raise ModelError("hashed words need a network that begins with a linear layer: choose linear, mlp or head")
    first = PresenceLinear(buckets, layers[1].out_features)
    with torch.no_grad():
        first.weight[1:] = layers[1].weight.T
        first.bias.copy_(layers[1].bias)
    return nn.Sequential(first, *layers[2:])


def presence_of(network: nn.Module) -> PresenceLinear:
    """The layer that `with_presence` put first."""
    return next(layer for layer in network.modules() if isinstance(layer, PresenceLinear))
