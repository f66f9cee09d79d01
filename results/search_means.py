"""The search for class means: `python results/search_means.py` tries what they are made of on records set aside.

Every line is one setting, on Location-30 otherwise than usual in one thing: runs of the product on all but some of the
training records, which judge them, others for each seed. Never test records; search-means.log has what was seen, and
what it holds is not tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import torch
from searching import search
from torch import Tensor

from reticent.data.examples import Examples
from reticent.experiments.people import set_aside
from reticent.experiments.presets import noise_of
from reticent.experiments.recipe import Recipe
from reticent.experiments.training import train
from reticent.inside import RoundSettings
from reticent.outside import NearestMean

LOG = Path(__file__).with_name("search-means.log")
DELTA = 1e-5
USUAL: dict[str, object] = {"clip": 8.0, "share": 0.16, "head": 0.2, "together": 0.7, "nearest": "in angle"}
OTHERWISE: dict[str, tuple[object, ...]] = {
    "share": (0.06, 0.1, 0.25, 0.4),
    "head": (0.05, 0.1, 0.3, 0.5),
    "together": (0.0, 0.5, 0.85, 1.0),
    "nearest": ("in place",),
}
"""How long rows may be, the share of the budget's mu for second moments, and what class means are made of."""


def wanted() -> Iterator[dict[str, object]]:
    """All settings: everything on Location-30, elsewhere only how means are compared."""
    for epsilon in (3.0, 1.0, 8.0):
        usual = {"data": "location30", "epsilon": epsilon, **USUAL}
        yield usual
        for name, values in OTHERWISE.items():
            for value in values:
                yield {**usual, name: value}
    yield {"data": "location30", "epsilon": 1000.0, **USUAL}  # next to no noise
    elsewhere = (("digits", 1.0, 0.0), ("adult", 1.0, 0.0), ("mnist", 8.0, 0.0), ("fashion-mnist", 8.0, 0.0))
    for data, clip, share in (*elsewhere, ("fashion-mnist", 8.0, 0.25)):
        for nearest in ("in angle", "in place"):
            yield {"data": data, "epsilon": 3.0, **USUAL, "clip": clip, "share": share, "nearest": nearest}
    for data in ("location30", "adult"):
        for clip in (2.0, 4.0, 7.0, 14.0):  # for tables.toml
            yield {"data": data, "epsilon": 3.0, **USUAL, "clip": clip, "share": 0.0}


def nearest_in_place(
    rule: NearestMean, mean: Tensor, noise: float, settings: RoundSettings, _parameters: int
) -> Tensor:
    """The layer of the least distance: |x - m|^2 is least where m x - |m|^2 / 2 is most."""
    means, there = rule.means(mean, noise)
    biases = torch.where(there, means.square().sum(1) * (-rule.scale / 2), -10 * rule.scale)
    return torch.cat([(means * (rule.scale / settings.max_grad_norm)).reshape(-1), biases])


def shuffled(seed: int) -> Callable[[Examples, int | None], tuple[Examples, Examples | None]]:
    """Sets examples aside, other ones for every seed."""

    def split(train: Examples, count: int | None) -> tuple[Examples, Examples | None]:
        return set_aside(train.take(np.random.RandomState(seed).permutation(len(train))), count)

    return split


def tried(
    data: str, epsilon: float, clip: float, share: float, head: float, together: float, nearest: str
) -> list[float]:
    """The share of records set aside that are told right, for each seed."""
    recipe = Recipe(
        data=data,
        method="class_means",
        epsilon=epsilon,
        delta=DELTA,
        whiten=noise_of(share, epsilon, DELTA) if share else 0.0,
        max_grad_norm=clip,
        options={"head": head},
        validation={"digits": 300, "location30": 800}.get(data, 10_000),
    )
    solve = NearestMean.solve if nearest == "in angle" else nearest_in_place
    found = []
    for seed in range(16 if data == "location30" else 3):
        with (
            mock.patch("reticent.outside.class_means.TOGETHER", together),
            mock.patch.object(NearestMean, "solve", solve),
            mock.patch("reticent.experiments.training.set_aside", shuffled(seed)),
        ):
            found.append(train(replace(recipe, seed=seed)).accuracy or 0.0)
    return found


if __name__ == "__main__":
    search(LOG, wanted(), tried, digits=4)
