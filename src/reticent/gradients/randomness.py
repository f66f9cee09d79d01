"""Leave things as they were: torch's random states, a model's modes and buffers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def undisturbed(model: nn.Module) -> Iterator[None]:
    """Give back torch's random states and the model's modes and buffers when the block ends.

    >>> before = torch.get_rng_state()
    >>> with undisturbed(nn.Identity()):
    ...     _ = torch.rand(3)
    >>> torch.equal(before, torch.get_rng_state())
    True
    """
    modes = [(module, module.training) for module in model.modules()]
    buffers = [(buffer, buffer.detach(), buffer.detach().clone()) for buffer in model.buffers()]
    devices = {tensor.device for tensor in (*model.parameters(), *model.buffers()) if tensor.device.type == "cuda"}
    try:
        with torch.random.fork_rng(devices=sorted(device.index for device in devices)):
            yield
    finally:
        for module, mode in modes:
            module.training = mode
        with torch.no_grad():
            for buffer, itself, kept in buffers:
                if buffer.shape != kept.shape or buffer.data_ptr() != itself.data_ptr():
                    buffer.data = itself  # a pass gave it other memory
                if not torch.equal(buffer, kept):
                    buffer.copy_(kept)
