"""The search for how to train on photographs: `python results/search_photos.py` tries it on images set aside.

Every line is one setting on CIFAR-10, otherwise than usual in one thing, with two seeds: runs of the product on all but
10,000 training images, always the same, which judge them. Usual is scattering-photos alone. Never test images;
search-photos.log has what was seen, and what it holds is not tried again. What the features themselves are made of is
in search_whitened.py and search_patches.py.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from searching import search
from torch import Tensor, nn

import reticent as rt
from reticent.data.features.beside import LENGTH
from reticent.experiments.recipe import Recipe
from reticent.experiments.settling import settled
from reticent.experiments.training import examples, train

LOG = Path(__file__).with_name("search-photos.log")
DELTA, SEEDS = 1e-5, 2
BOTH = "scattering-photos|patches"
TIMES = ("batch_size", "epochs", "lr")
"""What is said of these is so many times the rule's."""
FEATURES: tuple[dict[str, Any], ...] = ({}, {"features": BOTH})
KERNELS: tuple[dict[str, Any], ...] = ({"kernel": 0.5}, {"kernel": 1.0}, {"kernel": 2.0}, {"kernel": 4.0})
STEPS: tuple[dict[str, Any], ...] = (
    {"lr": 0.5},
    {"lr": 2.0},
    {"features": BOTH, "lr": 0.5},
    {"features": BOTH, "lr": 2.0},
    {"batch_size": 2.0, "epochs": 2.0},
    {"batch_size": 4.0, "epochs": 4.0},
    {"epochs": 2.0, "lr": 0.5},
    {"average_last": 0.0},
    {"average_last": 0.4},
    {"lr_schedule": "cosine", "average_last": 0.0},
    {"method": "noise_decay"},
    {"method": "band_mf"},
    {"method": "auto_s"},
)
TRIED = {3.0: FEATURES + STEPS + KERNELS, 1.0: FEATURES + KERNELS, 8.0: FEATURES}
"""What was tried at each epsilon."""


def waves(rows: Tensor, width: float, many: int = 4000) -> Tensor:
    """Random Fourier features, as long as rows are: linear on them is a kernel machine (Rahimi & Recht 2007)."""
    rng = torch.Generator().manual_seed(0)
    ways = torch.randn(rows.shape[1], many, generator=rng) / (LENGTH * width)
    starts = 2 * math.pi * torch.rand(many, generator=rng)
    return (rows @ ways).add_(starts).cos_().mul_(LENGTH * math.sqrt(2 / many))


def tried(epsilon: float, **other: Any) -> list[float]:
    """The share of images set aside that are told right, for each seed."""
    features = other.pop("features", "scattering-photos")
    recipe = Recipe(data="cifar10", features=features, epsilon=epsilon, delta=DELTA, validation=10_000).filled()
    dataset = examples(recipe)
    if "kernel" in other:
        assert dataset.test is not None
        train_x, test_x = (waves(part.x.flatten(1), other["kernel"]) for part in (dataset.train, dataset.test))
        said: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA, "loss": "cross_entropy"}
        fits = (rt.fit(nn.Linear(4000, 10), (train_x, dataset.train.y), **said, seed=seed) for seed in range(SEEDS))
        return [one.evaluate(test_x, dataset.test.y)["accuracy"] for one in fits]
    rule = settled(recipe, dataset)
    said = {name: value * getattr(rule, name) if name in TIMES else value for name, value in other.items()}
    if "lr" in said:
        said["average_last"] = rule.average_last
    return [train(replace(recipe, **said, seed=seed)).accuracy or 0.0 for seed in range(SEEDS)]


if __name__ == "__main__":
    wanted = ({"epsilon": epsilon, **other} for epsilon, others in TRIED.items() for other in others)
    search(LOG, wanted, tried, digits=4)
