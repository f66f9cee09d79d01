"""One's own model and data, such as a user brings them: a tiny network, a tuple, a module with a factory."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import reticent as rt
from reticent.trained import Trained

FACTORY = """
import torch
from torch import nn

def make_model(inputs, classes):
    return nn.Sequential(nn.Linear(*inputs, 8), nn.Tanh(), nn.Linear(8, classes))

def no_model():
    return 3
"""
TOML = """
name = "Visits"
classes = ["stays", "leaves", "returns"]
train = ["train-x.npy", "train-y.npy"]
test = ["test-x.npy", "test-y.npy"]
"""
SETTINGS: dict[str, Any] = {"epsilon": 4.0, "epochs": 2.0, "batch_size": 30.0, "lr": 0.5, "seed": 3}


@dataclass(frozen=True)
class Mine:
    """Three clouds of points: what is trained on, and public examples of the same kind."""

    train: tuple[Tensor, Tensor]
    test: tuple[Tensor, Tensor]
    validation: tuple[Tensor, Tensor]

    def fit(self, folder: Path | None = None, **changes: Any) -> Trained:
        torch.manual_seed(3)
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
        public: dict[str, Any] = {"test": self.test, "validation": self.validation, "name": "Visits"}
        public["classes"] = ["stays", "leaves", "returns"]
        return rt.fit(model, self.train, folder=folder, **(SETTINGS | public | changes))


def clouds(count: int, seed: int) -> tuple[Tensor, Tensor]:
    rng = torch.Generator().manual_seed(seed)
    y = torch.arange(count) % 3
    return torch.randn(count, 4, generator=rng) + 2.0 * torch.nn.functional.one_hot(y, 4), y


@pytest.fixture
def mine() -> Mine:
    return Mine(clouds(150, 0), clouds(90, 1), clouds(60, 2))


@pytest.fixture
def on_disk(mine: Mine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to work in, with the data described and the factory in a module of its own."""
    for name, (x, y) in {"train": mine.train, "test": mine.test}.items():
        np.save(tmp_path / f"{name}-x.npy", x.numpy())
        np.save(tmp_path / f"{name}-y.npy", y.numpy())
    (tmp_path / "visits.toml").write_text(TOML)
    (tmp_path / "own_networks.py").write_text(FACTORY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("own_networks", None)
