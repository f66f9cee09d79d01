"""Shared by all tests: one thread, fixed seeds, and a tiny task."""

from __future__ import annotations

import pytest
import torch
from hypothesis import settings
from torch import Tensor

# A loaded machine must not turn a property red: nothing here is about time.
settings.register_profile("reticent", deadline=None)
settings.load_profile("reticent")


@pytest.fixture(autouse=True)
def _calm() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)


@pytest.fixture
def blobs() -> tuple[Tensor, Tensor]:
    """Two clouds of 100 points each in four dimensions, three apart."""
    rng = torch.Generator().manual_seed(1)
    y = torch.arange(200) % 2
    return torch.randn(200, 4, generator=rng) + 3.0 * y[:, None], y
