"""Sameness: whether what came in the place of something says anything new."""

from __future__ import annotations

from collections import deque

import numpy as np
import torch
from torch import Tensor

_DEPTH = 8
_FEW = 1024


def same(before: object, now: object, depth: int = _DEPTH) -> bool:
    """Whether two things are one, or made alike of the same numbers and words, bit by bit.

    A length that is noted in every pass, or a mask that is made anew, tells nothing if it is what it was.

    >>> same((1000, "a"), (1000, "a")), same(0.0, -0.0), same(1, True), same([1], [2])
    (True, False, False, False)
    """
    if before is now:
        return True
    if type(before) is not type(now) or depth == 0:
        return False
    if isinstance(before, int | str | bytes | torch.dtype | torch.device):
        return before == now
    if isinstance(before, float | complex):
        return repr(before) == repr(now)
    if isinstance(before, Tensor) and isinstance(now, Tensor):
        return _same_numbers(before, now)
    if isinstance(before, dict) and isinstance(now, dict):
        return same([*before, *before.values()], [*now, *now.values()], depth)
    if isinstance(before, tuple | list | deque) and isinstance(now, tuple | list | deque):
        pairs = zip(before, now, strict=False)
        return len(before) == len(now) and all(same(one, other, depth - 1) for one, other in pairs)
    return False


def _same_numbers(before: Tensor, now: Tensor) -> bool:
    alike = before.dtype == now.dtype and before.shape == now.shape and before.device == now.device
    if not alike or before.layout != torch.strided or before.requires_grad != now.requires_grad:
        return False
    return same_bits(bits(before), bits(now))


def bits(tensor: Tensor) -> Tensor:
    """The memory of a tensor: its own, if it lies there in one piece, else a copy."""
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)


def same_bits(before: Tensor, now: Tensor) -> bool:
    """Whether two pieces of memory hold the same; numpy compares eight bytes at a time, five times as fast as torch.

    >>> same_bits(bits(torch.tensor([0.0, float("nan")])), bits(torch.tensor([0.0, float("nan")])))
    True
    """
    if before.numel() <= _FEW or not before.is_cpu:
        return torch.equal(before, now)
    one, other = before.numpy(), now.numpy()
    eights = len(one) // 8 * 8
    words = one[:eights].view(np.uint64), other[:eights].view(np.uint64)
    return bool((words[0] == words[1]).all()) and torch.equal(before[eights:], now[eights:])
