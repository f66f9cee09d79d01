"""Kept memory: the long vectors of a round are made where those of the last round were, if nobody has them any more.

The system takes blocks of 32 MB and more back whenever they are let go, and to be given clean pages again takes longer
than to compute with them. Whoever still holds a vector, or a part of one, keeps its memory to himself.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

LEAST = 2**25
"""Bytes: smaller blocks are kept by malloc itself."""

MOST = 2
"""Vectors that are kept: the parameters before a round, and the sum; both are there while the gradients are made, so
that to keep them takes no more memory at the most."""

_OF_NUMPY = (torch.float32, torch.float64)


class Pages:
    """Memory for vectors of one length.

    >>> kept, vector = Pages(least=0), torch.zeros(3)
    >>> one = kept.like(vector)
    >>> part, place = one[1:], one.data_ptr()
    >>> del one
    >>> kept.like(vector).data_ptr() == place
    False
    >>> del part
    >>> kept.like(vector).data_ptr() == place
    True
    """

    def __init__(self, *, least: int | None = None):
        self._least = LEAST if least is None else least
        self._memory: list[NDArray[Any]] = []

    def like(self, vector: Tensor) -> Tensor:
        """A tensor of the same form, with anything in it."""
        if vector.device.type != "cpu" or vector.dtype not in _OF_NUMPY or vector.nbytes < self._least:
            return torch.empty_like(vector)
        for memory in self._memory:
            if sys.getrefcount(memory) <= _NOBODY and memory.nbytes == vector.nbytes:
                return torch.from_numpy(memory)  # every tensor on this memory refers to it, views included
        memory = torch.empty_like(vector).numpy()
        if len(self._memory) < MOST:
            self._memory.append(memory)
        return torch.from_numpy(memory)


def _references() -> int:
    """How often something in a list is referred to, asked in the way that `like` asks."""
    for memory in [torch.empty(1).numpy()]:
        found = sys.getrefcount(memory)
    return found


_NOBODY = _references()
