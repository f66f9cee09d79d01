"""The search for random patches: `python results/search_patches.py` tries what they are worth, alone and side by side.

Every line is one setting of patches, alone or beside whitened scattering. 6,000 training images learn (least squares,
no privacy, the best of four penalties) and 3,000 others judge, each third of 9,000 in turn; never test images.
search-patches.log has what was seen, and what it holds is not tried again. DP-SGD on them is in search_photos.py.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from search_whitened import JUDGE, LEARN, accuracy
from searching import search

from reticent.data import extract, load
from reticent.data.features.beside import LENGTH, joined_rows
from reticent.data.features.patches import RandomPatches

LOG = Path(__file__).with_name("search-patches.log")
TRIED: tuple[dict[str, Any], ...] = (
    {"scattering": True},
    {"scattering": False, "filters": 400},
    {"scattering": True, "filters": 400},
    {"scattering": True, "filters": 400, "threshold": 0.5},
    {"scattering": True, "filters": 400, "side": 8},
    {"scattering": True, "filters": 200},
    {"scattering": True, "filters": 400, "side": 5},
    {"scattering": True, "filters": 400, "mirror": False},
    {"scattering": True, "filters": 400, "threshold": 2.0},
    {"scattering": True, "filters": 800},
    {"data": "fashion-mnist", "scattering": True},
    {"data": "fashion-mnist", "scattering": True, "filters": 400, "mirror": False},
    {"data": "fashion-mnist", "scattering": False, "filters": 400, "mirror": False},
    {"data": "fashion-mnist", "scattering": True, "filters": 400, "mirror": False, "numbers": 1000},
    {"data": "fashion-mnist", "scattering": True, "filters": 400},
    {"data": "fashion-mnist", "scattering": True, "filters": 400, "numbers": 1000},
    {"data": "fashion-mnist", "scattering": False, "filters": 400},
    {"data": "mnist", "scattering": True},
    {"data": "mnist", "scattering": True, "filters": 400, "mirror": False},
    {"data": "mnist", "scattering": False, "filters": 400, "mirror": False},
)
SCATTERING = {
    "cifar10": "scattering-photos",
    "fashion-mnist": "scattering-whitened",
    "mnist": "deskew+scattering-strokes",
}
"""What patches stand beside; digits are straightened for both."""


def tried(scattering: bool, data: str = "cifar10", **patches: Any) -> list[float]:
    """The share of images set aside that are told right, by each third."""
    whole = load(data)
    order = torch.randperm(len(whole.train), generator=torch.Generator().manual_seed(0))[: LEARN + JUDGE]
    some = replace(whole, train=whole.train.take(order), test=None)
    rows = [extract(some, SCATTERING[data]).train.x] if scattering else []
    if patches:
        images = extract(some, "deskew") if data == "mnist" else some
        rows.append(extract(images, RandomPatches(tuple(images.train.x.shape[1:]), **patches)).train.x)
    x, y = joined_rows(rows) / LENGTH, some.train.y
    found = []
    for start in range(0, len(x), JUDGE):
        judge = torch.arange(start, start + JUDGE)
        learn = torch.cat([torch.arange(start), torch.arange(start + JUDGE, len(x))])
        found.append(accuracy(x[learn], y[learn], x[judge], y[judge]))
    return found


if __name__ == "__main__":
    search(LOG, TRIED, tried, digits=4)
