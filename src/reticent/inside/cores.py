"""Cores: work in parts that do not depend on one another, done by as many threads as torch uses."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch

_POOL: dict[tuple[int, int], ThreadPoolExecutor] = {}
"""By process and size: a forked process has none of its parent's threads."""


def each(count: int, act: Callable[[int], None]) -> None:
    """Do `act(0)`, ..., `act(count - 1)`, in any order and by any thread; this one among them.

    >>> done = [0, 0, 0]
    >>> each(3, lambda number: done.__setitem__(number, number * number))
    >>> done
    [0, 1, 4]
    """
    threads = min(count, torch.get_num_threads())
    if threads <= 1:
        for number in range(count):
            act(number)
        return
    numbers = itertools.count()  # its next is one act of the interpreter: no number is given twice

    def some() -> None:
        while (number := next(numbers)) < count:
            act(number)

    others = [_pool(threads - 1).submit(some) for _ in range(threads - 1)]
    try:
        some()
    finally:
        for other in others:
            other.exception()  # nobody is at work any more when this returns
    for other in others:
        other.result()


def _pool(size: int) -> ThreadPoolExecutor:
    here = os.getpid(), size
    found = _POOL.get(here)
    if found is None:  # another thread may do the same meanwhile: whoever is cleared away still ends what it was given
        found = ThreadPoolExecutor(size, thread_name_prefix="cores")
        _POOL.clear()
        _POOL[here] = found
    return found
