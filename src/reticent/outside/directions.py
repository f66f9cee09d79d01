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
