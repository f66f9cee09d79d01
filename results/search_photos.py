"""The search for how to train on photographs: `python results/search_photos.py` tries it on images set aside.

Every line is one setting on CIFAR-10 with the best features, otherwise than usual in one thing, with two seeds: runs of
the product on all but 10,000 training images, always the same, which judge them. Never test images; search-photos.log
has what was seen, and what it holds is not tried again. The features themselves are in search_whitened.py.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from torch import Tensor, nn

import reticent as rt
from reticent.experiments.recipe import Recipe
from reticent.experiments.settling import settled
from reticent.experiments.training import examples, train

LOG = Path(__file__).with_name("search-photos.log")
DELTA, SEEDS = 1e-5, 2
TIMES = ("batch_size", "epochs", "lr")
"""What is said of these is so many times the rule's."""
TRIED: tuple[dict[str, Any], ...] = (
    {},
    {"lr": 0.5},
    {"lr": 2.0},
    {"batch_size": 2.0, "epochs": 2.0},
    {"batch_size": 4.0, "epochs": 4.0},
    {"epochs": 2.0, "lr": 0.5},
    {"average_last": 0.0},
    {"average_last": 0.4},
    {"lr_schedule": "cosine", "average_last": 0.0},
    {"method": "noise_decay"},
    {"method": "band_mf"},
    {"method": "auto_s"},
    {"kernel": 0.5},
    {"kernel": 2.0},
)


class Waves(nn.Module):
    """Random Fourier features: a linear layer on them is a kernel machine (Rahimi & Recht 2007)."""

    def __init__(self, wide: int, width: float, many: int = 4000):
        super().__init__()
        rng = torch.Generator().manual_seed(0)
        self.register_buffer("ways", torch.randn(wide, many, generator=rng) / (8 * width))
        self.register_buffer("starts", 2 * math.pi * torch.rand(many, generator=rng))

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = (x.flatten(1) @ self.ways + self.starts).cos() * (8 * math.sqrt(2 / len(self.starts)))  # type: ignore[operator,arg-type]
        return found  # about as long as a row is: 8


def tried(epsilon: float, **other: Any) -> list[float]:
    """The share of images set aside that are told right, for each seed."""
    recipe = Recipe(data="cifar10", epsilon=epsilon, delta=DELTA, validation=10_000).filled()
    dataset = examples(recipe)
    if "kernel" in other:
        assert dataset.test is not None
        found, test = [], (dataset.test.x, dataset.test.y)
        wide = dataset.train.x[0].numel()
        for seed in range(SEEDS):
            torch.manual_seed(seed)
            model = nn.Sequential(Waves(wide, other["kernel"]), nn.Linear(4000, 10))
            pair = (dataset.train.x, dataset.train.y)
            trained = rt.fit(model, pair, epsilon=epsilon, delta=DELTA, loss="cross_entropy", seed=seed)
            found.append(trained.evaluate(*test)["accuracy"])
        return found
    rule = settled(recipe, dataset)
    said = {name: value * getattr(rule, name) if name in TIMES else value for name, value in other.items()}
    if "lr" in said:
        said["average_last"] = rule.average_last
    return [train(replace(recipe, **said, seed=seed)).accuracy or 0.0 for seed in range(SEEDS)]


def main() -> None:
    """All that is to be tried and is not in the log."""
    torch.set_num_threads(1)
    known = [json.loads(line)["settings"] for line in LOG.read_text().splitlines()] if LOG.exists() else []
    for settings in ({"epsilon": epsilon, **other} for epsilon in (3.0, 1.0) for other in TRIED):
        if settings not in known:
            line = {"settings": settings, "accuracy": round(mean(tried(**settings)), 4)}
            with LOG.open("a") as log:
                log.write(json.dumps(line) + "\n")
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
