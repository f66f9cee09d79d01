"""Leave things as they were: torch's random states, a model's modes and buffers, what a failed attempt began."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import nn

from reticent.gradients.precision import own_precision

_UNDO: ContextVar[Callable[[], object] | None] = ContextVar("undo", default=None)


@contextmanager
def undone_by(undo: Callable[[], object]) -> Iterator[None]:
    """Within the block, what an attempt has left in the model when it failed is put back so."""
    token = _UNDO.set(undo)
    try:
        yield
    finally:
        _UNDO.reset(token)


def undo_attempt() -> None:
    """A pass failed halfway and another way is tried: the model must not keep what it had begun.

    >>> with undone_by(lambda: print("as it was")):
    ...     undo_attempt()
    as it was
    """
    undo = _UNDO.get()
    if undo is not None:
        undo()


@contextmanager
def at_rest(model: nn.Module) -> Iterator[None]:
    """A model in evaluation mode; afterwards every part of it is in the mode that it was in.

    >>> model = nn.Sequential(nn.Dropout(), nn.BatchNorm1d(2).eval())
    >>> with at_rest(model):
    ...     model[0].training
    False
    >>> model[0].training, model[1].training
    (True, False)
    """
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


@contextmanager
def undisturbed(model: nn.Module) -> Iterator[None]:
    """Give back torch's random states and the model's modes and buffers when the block ends; in it, precision is ours.

    >>> before = torch.get_rng_state()
    >>> with undisturbed(nn.Identity()):
    ...     _ = torch.rand(3)
    >>> torch.equal(before, torch.get_rng_state())
    True
    """
    modes = [(module, module.training) for module in model.modules()]
    memory = [(tensor, tensor.detach()) for tensor in (*model.parameters(), *model.buffers())]
    buffers = [(buffer, buffer.detach().clone()) for buffer in model.buffers()]
    devices = {tensor.device for tensor in (*model.parameters(), *model.buffers()) if tensor.device.type == "cuda"}
    try:
        with torch.random.fork_rng(devices=sorted(device.index for device in devices)), own_precision():
            yield
    finally:
        for module, mode in modes:
            module.training = mode
        with torch.no_grad():
            for tensor, before in memory:
                if tensor.shape != before.shape or tensor.data_ptr() != before.data_ptr():
                    tensor.data = before  # a pass gave it other memory
            for buffer, kept in buffers:
                if not torch.equal(buffer, kept):
                    buffer.copy_(kept)
