"""The modules beside this file are imported by name."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True, scope="module")
def _warm() -> None:
    """What is imported and priced here need not be imported and priced again by every rank that is forked."""
    import runs

    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method, rounds in (("dpsgd", 2), ("dpsgd", 3), ("dpsgd", 4), ("dpsgd", 5), ("dpsur", 6), ("dpsur", 8)):
            runs.make(method, rounds=rounds).spent()
