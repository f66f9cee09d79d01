"""Whole masks: no branch of a model may depend on whether all examples of a batch fill their length.

The Hugging Face transformers leave an attention mask out where no example of the batch is padded: a look at all of them
together, after which no example's gradient is provably its own. Told not to look, they calculate the same numbers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

_LIBRARY, _SKIPS = "transformers.masking_utils", ("allow_is_causal_skip", "allow_is_bidirectional_skip")
_KINDS = ("sdpa", "eager")


@contextmanager
def whole_masks() -> Iterator[None]:
    """Within the block, a mask that is given is used; without that library there is nothing to do.

    >>> with whole_masks():
    ...     pass
    """
    library = sys.modules.get(_LIBRARY)
    table = getattr(library, "ALL_MASK_ATTENTION_FUNCTIONS", {})
    before = {kind: table[kind] for kind in _KINDS if kind in table}
    for kind, make in before.items():
        table[kind] = _Whole(make)
    try:
        yield
    finally:
        for kind, make in before.items():
            table[kind] = make


class _Whole:
    """Makes the mask of a pattern that is nobody's, and cuts the padding of each example from it."""

    def __init__(self, make: Callable[..., Any]):
        self._make = make

    def __call__(self, *args: object, attention_mask: Tensor | None = None, **settings: object) -> object:
        if attention_mask is None:
            return self._make(*args, attention_mask=None, **settings)
        settings.update(dict.fromkeys(_SKIPS, False))
        if settings.get("kv_offset", 0) != 0 or attention_mask.shape[-1] != settings.get("kv_length"):
            return self._make(*args, attention_mask=attention_mask, **settings)
        pattern: Tensor = self._make(*args, attention_mask=None, **settings)
        own = attention_mask[:, None, None, :].bool()
        if pattern.dtype == torch.bool:
            return pattern & own
        return pattern.masked_fill(~own, torch.finfo(pattern.dtype).min)  # as the library hides a place
