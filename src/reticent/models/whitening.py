"""Whitening by released numbers: what nearly all examples have in common takes up less of a row.

DP-SGD's noise is the same in all directions. A few in which examples are long fill the clip norm, and the others drown.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from reticent.errors import SettingError
from reticent.models.normalising import in_front_of_weights

MOST_WIDE = 4096
"""Numbers in a row: products of each with each are released, 8 million then."""


class Whiten(nn.Module):
    """Takes shares of some directions away from an input, and gives it back with length 8, however long it was.

    >>> layer = Whiten((2,))
    >>> layer.directions, layer.shares = torch.tensor([[1.0, 0.0]]), torch.tensor([1.0])
    >>> layer(torch.tensor([[3.0, 0.5]]))
    tensor([[0., 8.]])
    """

    directions: Tensor
    shares: Tensor

    def __init__(self, shape: tuple[int, ...]):
        super().__init__()
        self.shape = shape
        self.register_buffer("directions", torch.zeros(0, torch.Size(shape).numel()))
        self.register_buffer("shares", torch.zeros(0))

    def forward(self, x: Tensor) -> Tensor:
        rows = x.flatten(1)  # with few passes over them: they are many more numbers than a linear layer makes of them
        directions, shares = self.directions.to(rows), self.shares.to(rows)
        rows = torch.addmm(rows, (rows @ directions.T) * shares, directions, alpha=-1)
        lengths: Tensor = rows.norm(dim=1, keepdim=True)
        return (rows * (8 / lengths.clamp(min=1e-12))).reshape(x.shape)

    def _load_from_state_dict(self, state: dict[str, Tensor], prefix: str, *others: Any) -> None:
        """As many directions as were found; what does not fit is left to torch to refuse."""
        directions, shares = (state.get(f"{prefix}{name}") for name in ("directions", "shares"))
        if directions is not None and shares is not None and directions.shape[:1] == shares.shape:
            self.directions = self.directions.new_zeros(len(shares), self.directions.shape[1])
            self.shares = self.shares.new_zeros(len(shares))
        super()._load_from_state_dict(state, prefix, *others)


def whiten_of(shape: tuple[int, ...]) -> Whiten:
    """The layer for inputs of a shape, which takes nothing away yet.

    >>> whiten_of((1, 2, 2)).directions.shape
    torch.Size([0, 4])
    """
    wide = torch.Size(shape).numel()
    if wide > MOST_WIDE:
        raise SettingError(
            f"whitening is for inputs of at most {MOST_WIDE:,} numbers, and these have {wide:,}: "
            "take features that are shorter, or leave it out"
        )
    return Whiten(shape)


def with_whiten(model: nn.Module, inputs: tuple[int, ...]) -> nn.Sequential:
    """The same network with a `Whiten` in front of its first layer that has weights.

    >>> with_whiten(nn.Sequential(nn.Flatten(), nn.Linear(4, 2)), (2, 2))
    Sequential(
      (0): Flatten(start_dim=1, end_dim=-1)
      (1): Whiten()
      (2): Linear(in_features=4, out_features=2, bias=True)
    )
    """
    return in_front_of_weights(model, inputs, whiten_of)
