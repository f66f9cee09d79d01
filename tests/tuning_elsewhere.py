"""What tests of tuning send to other processes: importable by name."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import torch
from torch import nn


def failing_until(sign: Path, /) -> nn.Module:
    """A model, or in another process an error for every odd seed, as long as there is no sign."""
    if multiprocessing.parent_process() is not None and not sign.exists() and torch.initial_seed() % 2:
        raise OSError("no luck")
    return nn.Linear(4, 2)
