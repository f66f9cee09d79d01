"""Centring in an experiment: release the mean of what the first layer sees, once, before training begins."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from reticent import checkpoint
from reticent.accounting import Event, Gaussian, Ledger, Planned
from reticent.data import Examples
from reticent.data.statistics import release_mean
from reticent.errors import ResumeError
from reticent.inside import Coins, Vault, store
from reticent.models.centring import split_at_centre

BEFORE_THE_FIRST = -1
"""The round of the release: coins belong to a place, so none is used again in training."""


def charge(noise_multiplier: float | None) -> tuple[Event, ...]:
    """What centring costs: it belongs to the guarantee of the run, which is planned before anything is released.

    >>> charge(50.0), charge(None)
    ((Gaussian(noise_multiplier=50.0),), ())
    """
    return () if noise_multiplier is None else (Gaussian(noise_multiplier),)


def centre(
    model: nn.Module, private: Examples, noise_multiplier: float, *, seed: int | None, folder: Path | None
) -> None:
    """Set the model's centre to a noisy mean.

    In a folder, the coins are on disk before anything is released with them, and what was released is not asked again.
    """
    before, middle = split_at_centre(model)
    kept = _Kept(folder / "centre.safetensors" if folder is not None else None)
    coins = Coins.restored(kept.tree["coins"]) if "coins" in kept.tree else _coins(seed)
    vault = Vault(
        store(private),
        coins=coins,
        ledger=Ledger(folder / "centre.jsonl" if folder is not None else None),
        allowance=Planned(charge(noise_multiplier)),
    )
    kept.claim(vault.fingerprint(), coins)
    if "mean" not in kept.tree:
        # Normalised features are exactly this long; pixels between 0 and 1 are shorter; anything longer is cut.
        limit = math.sqrt(middle.mean.numel())
        with vault.round(BEFORE_THE_FIRST):
            kept.add(release_mean(vault, before, limit=limit, noise_multiplier=noise_multiplier))
    middle.mean.copy_(kept.tree["mean"])


def _coins(seed: int | None) -> Coins:
    return Coins.fresh() if seed is None else Coins.from_seed(seed)


class _Kept:
    """The coins and the mean on disk, if there is a folder."""

    def __init__(self, path: Path | None):
        self._path = path
        self.tree: dict[str, Any] = checkpoint.read(path) if path is not None and path.exists() else {}

    def claim(self, fingerprint: str, coins: Coins) -> None:
        """Write down the coins and whom they are for; refuse other examples than those."""
        if self.tree.get("examples", fingerprint) != fingerprint:
            raise ResumeError(
                f"{self._path} was made for other examples: the same noise on others would reveal them. "
                "Give another folder."
            )
        self._write({"coins": coins.keepsake(), "examples": fingerprint} | self.tree)

    def add(self, mean: Tensor) -> None:
        """Write down what was released."""
        self._write(self.tree | {"mean": mean})

    def _write(self, tree: dict[str, Any]) -> None:
        self.tree = tree
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            checkpoint.write(self._path, tree)
