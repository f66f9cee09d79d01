"""One thread, fixed seeds, and the oracle: a float64 loop over single examples."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture(autouse=True)
def _steady():
    torch.set_num_threads(1)
    torch.manual_seed(0)
