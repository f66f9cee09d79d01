"""Normalising in an experiment: what a network needs to know of all examples is released once, before training begins.

The statistics of channels (Tramer and Boneh 2021) and the mean of what the first layer sees: both pass the vault's
door, both are charged to the run.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from reticent import checkpoint
from reticent.accounting import Event, Gaussian, Ledger, Planned
from reticent.data import Examples
from reticent.data.features.statistics import release_mean, release_moments
from reticent.errors import ResumeError
from reticent.experiments.recipe import Recipe
from reticent.inside import Randomness, Vault, as_store
from reticent.models.normalising import split_at_centre, statistics_of

BEFORE_THE_FIRST = {"centre": -1, "statistics": -2}
"""The rounds of the releases: randomness belongs to a place, so none is used again, not in training either."""

_PATHS = 81  # channels that scattering makes of one colour, of which only the average sees a flat image


def charges(recipe: Recipe) -> tuple[Event, ...]:
    """What normalising costs: it belongs to the guarantee of the run, which is planned before anything is released.

    >>> charges(Recipe(centre=50.0))
    (Gaussian(noise_multiplier=50.0),)
    >>> len(charges(Recipe(statistics_noise=8.0)))
    2
    """
    statistics = (Gaussian(recipe.statistics_noise),) * 2 if recipe.statistics_noise is not None else ()
    return statistics + ((Gaussian(recipe.centre),) if recipe.centre is not None else ())


def normalise(model: nn.Module, private: Examples, recipe: Recipe, folder: Path | None) -> None:
    """Fill the layers of a recipe's network that normalise; the centre is that of what the statistics leave."""
    if recipe.statistics_noise is not None:
        colours = int(private.x.shape[1]) // (_PATHS if "scattering" in (recipe.features or "") else 1)
        noise, size = recipe.statistics_noise, recipe.size
        standardise(model, private, noise, colours, size=size, seed=recipe.seed, folder=folder)
    if recipe.centre is not None:
        centre(model, private, recipe.centre, size=recipe.size, seed=recipe.seed, folder=folder)


def standardise(
    model: nn.Module,
    private: Examples,
    noise_multiplier: float,
    colours: int,
    *,
    size: int | None = None,
    seed: int | None,
    folder: Path | None,
) -> None:
    """Set the first layer to noisy means and deviations of the channels.

    An example counts for as much as a flat grey image of so many colours: known beforehand, unlike the median length
    that the paper takes.
    """
    length = math.sqrt(colours)

    def release(vault: Vault) -> dict[str, Tensor]:
        moments = release_moments(
            vault, mean_limit=length / 2, square_limit=length / 4, noise_multiplier=noise_multiplier, size=size
        )
        return {"mean": moments.mean, "std": moments.std}

    released = _once("statistics", private, (Gaussian(noise_multiplier),) * 2, release, seed, folder)
    layer = statistics_of(model)
    layer.mean.copy_(released["mean"].reshape(layer.mean.shape))
    layer.std.copy_(released["std"].reshape(layer.std.shape))


def centre(
    model: nn.Module,
    private: Examples,
    noise_multiplier: float,
    *,
    size: int | None = None,
    seed: int | None,
    folder: Path | None,
) -> None:
    """Set the model's centre to a noisy mean."""
    before, middle = split_at_centre(model)
    # Normalised features are about this long; pixels between 0 and 1 are shorter; anything longer is cut.
    limit = math.sqrt(middle.mean.numel())

    def release(vault: Vault) -> dict[str, Tensor]:
        return {"mean": release_mean(vault, before, limit=limit, noise_multiplier=noise_multiplier, size=size)}

    middle.mean.copy_(_once("centre", private, (Gaussian(noise_multiplier),), release, seed, folder)["mean"])


def _once(
    name: str,
    private: Examples,
    allowed: tuple[Event, ...],
    release: Callable[[Vault], dict[str, Tensor]],
    seed: int | None,
    folder: Path | None,
) -> dict[str, Any]:
    """What is released before training, under one name.

    In a folder, the key is on disk before anything is released with them, and what was released is not asked again:
    it takes the place of the key, which would tell what is under the noise.
    """
    kept = _Kept(folder / f"{name}.safetensors" if folder is not None else None)
    fresh = Randomness.fresh() if seed is None else Randomness.from_seed(seed)
    randomness = Randomness.from_state(kept.tree["randomness"]) if "randomness" in kept.tree else fresh
    ledger = Ledger(folder / f"{name}.jsonl" if folder is not None else None)
    vault = Vault(as_store(private), randomness=randomness, ledger=ledger, allowance=Planned(allowed))
    if "mean" in kept.tree:
        if ledger.tally() != Counter(allowed):
            raise ResumeError(
                f"{ledger.path} does not hold what was released for {name}: bring it back as it was, or start a new "
                "run in another folder"
            )
        return kept.tree
    kept.claim(vault.fingerprint(), randomness)
    with vault.round(BEFORE_THE_FIRST[name]):
        kept.write(release(vault))
    return kept.tree


class _Kept:
    """The key, then what was released with them, on disk if there is a folder."""

    def __init__(self, path: Path | None):
        self._path = path
        self.tree: dict[str, Any] = checkpoint.read(path) if path is not None and path.exists() else {}

    def claim(self, fingerprint: str, randomness: Randomness) -> None:
        """Write down the key and whom it is for; refuse other examples than those."""
        if self.tree.get("examples", fingerprint) != fingerprint:
            raise ResumeError(
                f"{self._path} was made for other examples: the same noise on others would reveal them. "
                "Give another folder."
            )
        self.write({"randomness": randomness.state(), "examples": fingerprint})

    def write(self, tree: dict[str, Any]) -> None:
        """Put this in the place of what was there."""
        self.tree = tree
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            checkpoint.write(self._path, tree)
