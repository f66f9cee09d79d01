"""How many threads torch may use inside a block: for small transforms more of them wait for each other only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def threads_inside(count: int) -> Iterator[None]:
    """Torch has so many threads inside, and as many as before afterwards.

    >>> with threads_inside(1):
    ...     torch.get_num_threads()
    1
    """
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
