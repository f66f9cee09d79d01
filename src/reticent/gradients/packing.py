"""Packed sequences: which example each row of a packed batch belongs to."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from reticent.gradients.registry import Function


class Packings:
    """Watches sequences being sorted by length and packed, and keeps the order they were sorted in."""

    watched = (torch.Tensor.index_select, torch.index_select, torch._pack_padded_sequence)

    def __init__(self) -> None:
        self._sorted: tuple[Tensor, Tensor] | None = None
        self._orders: list[tuple[Tensor, Tensor | None]] = []

    def note(self, func: Function, args: tuple[Any, ...], result: Any) -> None:
        """Take note of a watched function and its result."""
        if func is not torch._pack_padded_sequence:
            self._sorted = (result, args[2])
            return
        known = self._sorted is not None and args[0] is self._sorted[0]
        self._orders.append((result[1], self._sorted[1] if known and self._sorted is not None else None))
        self._sorted = None

    def order(self, batch_sizes: Tensor) -> Tensor:
        """Give the example of each packed row, by the batch sizes that every packed batch carries along."""
        for sizes, order in self._orders:
            if sizes is batch_sizes:
                return torch.arange(int(sizes[0])) if order is None else order
        raise LookupError("this batch was packed where it could not be seen")
