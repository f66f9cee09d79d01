"""The search for ensembles: `python results/search_ensembles.py` asks whether several models beat one.

Every line is so many linear models on whitened scattering of CIFAR-10, with two seeds: each with its share of the
budget's mu squared (Gaussian DP), or with all of it and a part of the examples to itself. Their average, which is one
linear model, is judged on 10,000 training images that no model saw. Each has the rule's own settings for what it has.
Never test images; search-ensembles.log has what was seen, and what it holds is not tried again.
"""

from __future__ import annotations

from pathlib import Path

import torch
from scipy.optimize import brentq
from searching import search
from torch import nn

import reticent as rt
from reticent.accounting import mu
from reticent.experiments.recipe import Recipe
from reticent.experiments.training import examples

LOG = Path(__file__).with_name("search-ensembles.log")
DELTA, SEEDS = 1e-5, 2
TRIED: tuple[tuple[int, str], ...] = ((1, "budget"), (2, "budget"), (4, "budget"), (2, "examples"), (4, "examples"))


def part_of(epsilon: float, models: int) -> float:
    """The epsilon of each of so many models that together have the budget's mu."""
    found: float = brentq(lambda part: mu(part, DELTA) - mu(epsilon, DELTA) / models**0.5, 1e-3, epsilon)
    return found


def tried(epsilon: float, models: int, shared: str) -> list[float]:
    """The share of images set aside that the average of the models tells right, for each seed."""
    dataset = examples(Recipe(data="cifar10", features="scattering-photos", validation=10_000).filled())
    assert dataset.test is not None
    each = part_of(epsilon, models) if shared == "budget" and models > 1 else epsilon
    found = []
    for seed in range(SEEDS):
        scores = torch.zeros(len(dataset.test), dataset.classes)
        for number in range(models):
            some = dataset.train
            if shared == "examples":
                some = some.take(torch.arange(number, len(some), models))
            own = models * seed + number
            torch.manual_seed(own)
            linear = nn.Linear(dataset.inputs[0], dataset.classes)
            trained = rt.fit(linear, some, epsilon=each, delta=DELTA, loss="cross_entropy", seed=own)
            with torch.no_grad():
                scores += trained.model(dataset.test.x)
        found.append((scores.argmax(1) == dataset.test.y).float().mean().item())
    return found


if __name__ == "__main__":
    settings = ((epsilon, *one) for epsilon in (1.0, 3.0) for one in TRIED)
    wanted = (dict(zip(("epsilon", "models", "shared"), one, strict=True)) for one in settings)
    search(LOG, wanted, tried, digits=4)
