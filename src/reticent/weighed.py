"""Words that most texts have count less: how many texts have each is released once, with noise, and charged."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from reticent.accounting import Gaussian
from reticent.beforehand import release_once
from reticent.data.features.statistics import release_presence
from reticent.inside import Store, Vault
from reticent.models.presence import presence_of

_MOST = 0.1  # of texts: chosen on reviews set aside (results/README.md)


def weigh(
    model: nn.Module,
    private: Store,
    noise_multiplier: float,
    *,
    size: int | None = None,
    seed: int | None,
    folder: Path | None,
) -> None:
    """Let words that many texts have count less: as if no more than the share `_MOST` of texts had each.

    They tell no class from another, and take up the length of a row from those that do. In rows of length 1 a word of
    n counts 1 / sqrt(n), so that all means together say how long texts are. What stands in the noise is left alone.
    """
    layer = presence_of(model)

    def release(vault: Vault) -> dict[str, Tensor]:
        many = len(vault) if size is None else size
        mean = release_presence(vault, len(layer.weight) - 1, noise_multiplier=noise_multiplier, size=size)
        usual = 1 / max(1.0, float(mean.sum()))
        return {"mean": mean, "most": torch.tensor(max(_MOST * usual, 3 * noise_multiplier / many))}

    allowed = (Gaussian(noise_multiplier),)
    found = release_once("statistics", private, allowed, release, seed, folder)
    layer.shares.copy_((found["most"] / found["mean"].clamp(min=float(found["most"]))).float())
