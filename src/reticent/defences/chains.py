"""Chains of linear layers: small, well known, and worth a shortcut or two."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import nn

ONE_THREAD_WORK = 2**24
"""Parameters times examples in a step below which a second thread costs more than it does."""


def is_chain(model: nn.Module) -> bool:
    """Whether a model is linear layers and known functions, one after another, without running statistics.

    >>> is_chain(nn.Sequential(nn.Linear(4, 3), nn.Tanh())), is_chain(nn.Sequential(nn.Conv2d(1, 1, 1)))
    (True, False)
    """
    leaves = [part for part in model.modules() if not isinstance(part, nn.Sequential)]
    return next(model.buffers(), None) is None and all(_known(leaf) for leaf in leaves)


def _known(leaf: nn.Module) -> bool:
    ours_or_torchs = type(leaf).__module__.startswith(("torch.nn.modules.", "reticent.models."))
    return type(leaf) is nn.Linear or (ours_or_torchs and not list(leaf.parameters()))


@contextmanager
def small_steps(models: Sequence[nn.Module], batch_size: int) -> Iterator[None]:
    """One thread while the steps of small chains are computed, then as many as before.

    Threads that wait for each other thousands of times a second are slower than one, on a busy machine tenfold.

    >>> with small_steps([nn.Linear(2, 2)], batch_size=10):
    ...     torch.get_num_threads()
    1
    """
    before = torch.get_num_threads()
    work = batch_size * sum(part.numel() for model in models for part in model.parameters())
    if work <= ONE_THREAD_WORK and all(is_chain(model) for model in models):
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
