"""A toy that over-fits, trained once for all tests of the attacks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from reticent.attacks.batched import ShadowRecipe, train_together
from reticent.attacks.signals import Signals, balanced_design, confidence

RECORDS, POPULATION, MODELS, INPUTS, CLASSES = 500, 300, 16, 24, 4


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@dataclass(frozen=True, eq=False)
class Toy:
    """Models that learn noisy labels by heart, and what they say of every record."""

    x: Tensor
    y: Tensor
    models: list[nn.Module]
    signals: Signals


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(INPUTS, 64), nn.ReLU(), nn.Linear(64, CLASSES))


@pytest.fixture(scope="session")
def overfitted() -> Toy:
    torch.set_num_threads(1)
    rng = torch.Generator().manual_seed(3)
    torch.manual_seed(3)
    x = torch.randn(RECORDS + POPULATION, INPUTS, generator=rng)
    truth = (x @ torch.randn(INPUTS, CLASSES, generator=rng)).argmax(1)
    noisy = torch.rand(len(x), generator=rng) < 0.1
    y = torch.where(noisy, torch.randint(0, CLASSES, truth.shape, generator=rng), truth)
    keep = balanced_design(MODELS, RECORDS, seed=0)
    members = [np.flatnonzero(row) for row in keep]
    recipe = ShadowRecipe(steps=400, batch_size=50, learning_rate=0.3)
    models = train_together([network() for _ in keep], x, y, members, recipe, list(range(MODELS)))
    with torch.no_grad():
        phi = np.stack([confidence(model(x).numpy(), y.numpy()) for model in models])
    return Toy(x, y, models, Signals(phi[:, :RECORDS], keep, phi[:, RECORDS:]))
