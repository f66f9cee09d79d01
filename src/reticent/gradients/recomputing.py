"""Checkpointed blocks: a pass that is watched keeps what torch would calculate again in the backward pass.

What is calculated again is out of the tape's sight, and micro-batches bound the memory of a pass anyhow.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch.utils.checkpoint as blocks

_REENTRANT, _OTHER = "CheckpointFunction", "_checkpoint_without_reentrant_generator"

_here = threading.local()
_lock = threading.Lock()
_blocks_within = 0
_torchs: dict[str, Any] = {}


class Spared:
    """Whether a block was met that asked to be calculated again."""

    def __init__(self, *, parts: bool):
        self.met, self.parts = False, parts


def keeps() -> bool:
    """Say whether this thread's passes keep what they are asked to calculate again."""
    kept: Spared | None = getattr(_here, "kept", None)
    return kept is not None and kept.parts


@contextmanager
def nothing_recomputed(*, parts: bool = True) -> Iterator[Spared]:
    """Within the block, what `torch.utils.checkpoint` is given in this thread runs as if it had not been there.

    Without `parts` that holds only for blocks that are run again as a whole (`use_reentrant=True`): of their gradients
    torch gives none to whoever asks for them by name, and sometimes says so.

    >>> import torch
    >>> with nothing_recomputed() as kept:
    ...     _ = blocks.checkpoint(torch.exp, torch.ones(2, requires_grad=True), use_reentrant=False)
    >>> kept.met
    True
    """
    before, kept = getattr(_here, "kept", None), Spared(parts=parts)
    _stand_in()
    _here.kept = kept
    try:
        yield kept
    finally:
        _here.kept = before
        _step_back()


def _stand_in() -> None:
    global _blocks_within
    with _lock:
        _blocks_within += 1
        if _blocks_within > 1:
            return
        for name, other in ((_REENTRANT, _Function), (_OTHER, _run)):
            if hasattr(blocks, name):
                _torchs[name] = getattr(blocks, name)
                setattr(blocks, name, other)


def _step_back() -> None:
    global _blocks_within
    with _lock:
        _blocks_within -= 1
        if _blocks_within:
            return
        for name, own in _torchs.items():
            setattr(blocks, name, own)


class _Function:
    """Stands where torch applies a block that is run again as a whole."""

    @staticmethod
    def apply(function: Callable[..., object], preserve: bool, *args: object) -> object:
        kept: Spared | None = getattr(_here, "kept", None)
        if kept is None:
            return _torchs[_REENTRANT].apply(function, preserve, *args)
        kept.met = True
        return function(*args)


def _run(*args: Any, **kwargs: Any) -> Iterator[None]:
    """Stands around a block of which parts are run again."""
    kept: Spared | None = getattr(_here, "kept", None)
    if kept is None or not kept.parts:
        yield from _torchs[_OTHER](*args, **kwargs)
        return
    kept.met = True
    yield
