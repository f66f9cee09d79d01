"""Precision: whatever autocast a caller has on, gradients are bounded and added up in the type they have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch

_KINDS = ("cpu", "cuda", "xpu")


@contextmanager
def own_precision() -> Iterator[None]:
    """Without the autocast of whoever calls: in half precision one example moves a sum by more than its bound.

    A model or a loss that turns autocast on by itself has it: what it answers is then turned back before it is summed.

    >>> with torch.autocast("cpu", dtype=torch.bfloat16), own_precision():
    ...     torch.is_autocast_enabled("cpu")
    False
    """
    with ExitStack() as stack:
        for kind in _KINDS:
            if torch.is_autocast_enabled(kind):
                stack.enter_context(torch.autocast(kind, enabled=False))
        yield
