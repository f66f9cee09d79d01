"""Noisy fills: means that stand for missing cells are released once, with noise, and charged to the run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from reticent.accounting import Gaussian
from reticent.beforehand import release_once
from reticent.data import Schema
from reticent.data.features.statistics import release_mean
from reticent.errors import SettingError
from reticent.inside import Store, Vault
from reticent.models.normalising import fill_of


def places_to_fill(examples: object, fill_noise: float | None) -> list[int]:
    """The inputs whose missing cells wait for a released mean; they and the noise belong together.

    >>> places_to_fill((torch.zeros(2, 3), torch.zeros(2)), None)
    []
    """
    schema = getattr(examples, "preprocessing", None)
    places = schema.noisy if isinstance(schema, Schema) else []
    if bool(places) != (fill_noise is not None):
        raise SettingError(
            'fill_noise and a schema with fill = "noisy" belong together: means of private columns are released with '
            "this noise and charged to the run; give fill_noise=20 (--set fill_noise=20), or other fills"
        )
    return places


def fill(
    model: nn.Module,
    private: Store,
    columns: Sequence[int],
    noise_multiplier: float,
    *,
    size: int | None = None,
    seed: int | None,
    folder: Path | None,
) -> None:
    """Set what stands for missing cells to noisy means of those that are there, all of them between 0 and 1.

    One release of two sums for each such column: of what the cells are above one half, and of how many are missing.
    A cell counts in one of the two, so an example is no longer than the root of their number.
    """
    layer, places = fill_of(model), torch.tensor(columns)
    assert layer is not None

    def sums(x: Tensor) -> Tensor:
        some = x[:, places].double()
        return torch.cat([torch.nan_to_num(some, nan=0.5).clamp(0, 1) - 0.5, torch.isnan(some).double()], dim=1)

    def release(vault: Vault) -> dict[str, Tensor]:
        limit = math.sqrt(len(places))
        above, missing = release_mean(vault, sums, limit=limit, noise_multiplier=noise_multiplier, size=size).chunk(2)
        return {"mean": (0.5 + above / (1 - missing).clamp(min=0.01)).clamp(0, 1).float()}

    allowed = (Gaussian(noise_multiplier),)
    layer.mean[places] = release_once("fill", private, allowed, release, seed, folder)["mean"]
