"""Gradients written by hand: where a library says the same without them, autograd takes the derivative.

A backward pass of its own may send one example's gradient anywhere, so that nothing is proved behind it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

# Where a function is written by hand, and the one beside it that calculates the same.
_BY_HAND = {("transformers.models.bloom.modeling_bloom", "GeLUFunction"): "bloom_gelu_forward"}


@contextmanager
def derived_by_torch() -> Iterator[None]:
    """Within the block, these functions are what they calculate; without that library there is nothing to do.

    >>> with derived_by_torch():
    ...     pass
    """
    before: list[tuple[Any, str, object]] = []
    for (home, name), same in _BY_HAND.items():
        library = sys.modules.get(home)
        plain: Callable[..., object] | None = getattr(library, same, None)
        if plain is not None and hasattr(library, name):
            before.append((library, name, getattr(library, name)))
            setattr(library, name, SimpleNamespace(apply=plain))
    try:
        yield
    finally:
        for library, name, function in before:
            setattr(library, name, function)
