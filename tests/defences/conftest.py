"""A task that over-fits: a few hundred digits, three labels in ten drawn at random, and a network large enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import nn

from reticent import data, models
from reticent.attacks import Scores, auc, confidence
from reticent.data import Examples
from reticent.defences.defended import probabilities
from reticent.defences.plain import Plain, fit, known_chance


@pytest.fixture
def points() -> Examples:
    """200 points in two clouds that overlap."""
    rng = torch.Generator().manual_seed(1)
    y = torch.arange(200) % 2
    return Examples(torch.randn(200, 4, generator=rng) + 2.0 * y[:, None], y)


@pytest.fixture
def small() -> Callable[[], nn.Module]:
    """Makes networks for the points."""
    return lambda: models.build("mlp", inputs=(4,), classes=2)


@dataclass(frozen=True)
class Leak:
    """How well the loss tells members from outsiders, and by how much the mean confidence in the label differs."""

    auc: float
    gap: float


def leak_of(model: nn.Module, members: Examples, outsiders: Examples) -> Leak:
    model.eval()
    with torch.no_grad():
        scores = [confidence(model(x).numpy(), y.numpy()) for x, y in (members, outsiders)]
    sure = [float(probabilities(model, x).gather(1, y[:, None]).mean()) for x, y in (members, outsiders)]
    return Leak(auc(Scores(*scores)), sure[0] - sure[1])


@dataclass(frozen=True, eq=False)
class Task:
    """Members to train on, reference examples beside them, outsiders to compare with, and clean test examples."""

    members: Examples
    reference: Examples
    outsiders: Examples
    clean: Examples
    make_model: Callable[[], nn.Module]
    settings: dict[str, float]

    def leak(self, model: nn.Module, members: Examples | None = None) -> Leak:
        return leak_of(model, self.members if members is None else members, self.outsiders)

    def accuracy(self, model: nn.Module) -> float:
        return float((probabilities(model, self.clean.x).argmax(1) == self.clean.y).float().mean())

    def start(self) -> nn.Module:
        """Always the same initial weights."""
        with known_chance(0):
            return self.make_model()


def mislabelled(examples: Examples, share: float, seed: int) -> Examples:
    rng = torch.Generator().manual_seed(seed)
    hit = torch.rand(len(examples), generator=rng) < share
    return Examples(examples.x, torch.where(hit, torch.randint(10, (len(examples),), generator=rng), examples.y))


@pytest.fixture(scope="session")
def task() -> Task:
    digits = data.load("digits")
    assert digits.test is not None
    noisy = mislabelled(digits.train, 0.3, seed=1)
    return Task(
        members=noisy.take(torch.arange(300)),
        reference=noisy.take(torch.arange(300, 600)),
        outsiders=mislabelled(digits.test, 0.3, seed=2),
        clean=digits.test,
        make_model=lambda: models.build("mlp", inputs=(1, 8, 8), classes=10, activation="relu"),
        settings={"epochs": 60, "batch_size": 50, "lr": 5e-3},
    )


@pytest.fixture(scope="session")
def undefended(task: Task) -> nn.Module:
    """A model trained plainly: what a defence has to improve upon."""
    torch.set_num_threads(1)
    model, plain, size = task.start(), Plain(**task.settings), len(task.members)
    rounds = plain.rounds(size)
    fit(model, *task.members, torch.arange(size), plain, rounds=rounds, seed=0, tell=lambda _: None)
    return model
