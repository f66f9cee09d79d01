"""Whitening: in which directions all examples are long is released once, with noise, and charged; those are shrunk."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor, nn

from reticent.accounting import Gaussian
from reticent.beforehand import release_once
from reticent.data.features.second_moments import release_second_moments, standing_out
from reticent.inside import Store, Vault
from reticent.models.normalising import split_at
from reticent.models.whitening import Whiten


def whiten(
    model: nn.Module,
    private: Store,
    noise_multiplier: float,
    *,
    size: int | None = None,
    seed: int | None,
    folder: Path | None,
) -> None:
    """Let the model's `Whiten` shrink the directions that stand out of noisy second moments of what it sees."""
    before, layer = split_at(Whiten, model)
    wide = layer.directions.shape[1]

    def release(vault: Vault) -> dict[str, Tensor]:
        many = len(vault) if size is None else size
        moments = release_second_moments(vault, before, wide, noise_multiplier=noise_multiplier, size=size)
        directions, shares = standing_out(moments, noise_multiplier, many)
        return {"mean": shares, "directions": directions}

    found = release_once("whiten", private, (Gaussian(noise_multiplier),), release, seed, folder)
    layer.directions, layer.shares = found["directions"].to(layer.directions), found["mean"].to(layer.shares)
