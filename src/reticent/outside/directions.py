"""Directions: what a released gradient becomes before the optimizer sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor


class Direction(Protocol):
    """A change of a released vector; free, because what was released is already paid for."""

    def point(self, released: Tensor) -> Tensor:
        """The direction the optimizer is given."""
        ...


@dataclass(frozen=True)
class Unchanged:
    """The released gradient itself."""

    def point(self, released: Tensor) -> Tensor:
        """The same vector."""
        return released


@dataclass(frozen=True)
class Sign:
    """Only the sign of each coordinate (Ghosh & Das 2024, algorithm 3); post-processing: it costs no privacy."""

    def point(self, released: Tensor) -> Tensor:
        """+1, -1, or 0 for an exact 0.

        >>> import torch
        >>> Sign().point(torch.tensor([-0.2, 3.0]))
        tensor([-1.,  1.])
        """
        return released.sign()
