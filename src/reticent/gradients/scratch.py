"""Scratch memory that is used again in every pass, because fresh pages cost more than the numbers put in them."""

from __future__ import annotations

import ctypes
import math
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

# glibc's malloc never learns from a block larger than this many bytes.
LARGEST_LESSON = 2**25


class Scratch:
    """Blocks handed out in the order they are asked for: a pass that asks as the last one did gets the same blocks."""

    def __init__(self) -> None:
        self._blocks: list[Tensor] = []
        self._next = 0
        self._brief: list[Tensor] = []
        self._lock = threading.Lock()

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Let `empty` take blocks from here; what it gave out before may be overwritten from now on."""
        before = getattr(_current, "scratch", None)
        free = self._lock.acquire(blocking=False)
        self._next = 0 if free else self._next
        _current.scratch = self if free else None  # a pass within a pass, or beside it, takes fresh memory
        try:
            yield
        finally:
            _current.scratch = before
            if free:
                self._lock.release()

    def take(self, count: int, like: Tensor) -> Tensor:
        """Give a flat block of `count` numbers with arbitrary contents."""
        self._next += 1
        return _grown(self._blocks, self._next - 1, count, like)

    def brief(self, which: int, count: int, like: Tensor) -> Tensor:
        """Give one of the few blocks that everybody writes and reads at once: they stay in the cache."""
        while len(self._brief) < which:
            self._brief.append(like.new_empty(0))
        return _grown(self._brief, which - 1, count, like)


def _grown(blocks: list[Tensor], place: int, count: int, like: Tensor) -> Tensor:
    if place == len(blocks):
        blocks.append(like.new_empty(count))
    block = blocks[place]
    if block.numel() < count or block.dtype is not like.dtype or block.device != like.device:
        block = blocks[place] = like.new_empty(count)
    return block[:count]


def keep_freed_pages() -> None:
    """Have glibc keep what a micro-batch frees, instead of returning it and paying for fresh pages in the next one.

    When a large block is freed, glibc takes it that such blocks come and go: it keeps up to twice that size from then
    on. This block is never touched, so it costs nothing; other allocators take no notice.
    """
    torch.empty(LARGEST_LESSON - 2**16, dtype=torch.uint8)


def give_back_freed_pages() -> None:
    """Have glibc return what it holds free: the proof of a large model frees more than a step will ever need."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", lambda _: None)
        trim(0)


_current = threading.local()


def empty(shape: Sequence[int], like: Tensor, *, brief: int = 0) -> Tensor:
    """Give an uninitialised tensor, from the scratch memory in use if there is one.

    A brief tensor holds its numbers only until the next one with the same number is asked for.

    >>> import torch
    >>> scratch = Scratch()
    >>> with scratch.in_use():
    ...     first = empty((2, 3), torch.ones(1))
    >>> with scratch.in_use():
    ...     again = empty((3, 2), torch.ones(1))
    >>> first.data_ptr() == again.data_ptr()
    True
    """
    scratch: Scratch | None = getattr(_current, "scratch", None)
    if scratch is None:
        return like.new_empty(shape)
    count = math.prod(shape)
    return (scratch.brief(brief, count, like) if brief else scratch.take(count, like)).view(*shape)
