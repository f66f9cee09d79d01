"""Normalising in an experiment: what a network needs to know of all examples is released once, before training begins.

The means that stand for missing cells, the statistics of channels (Tramer and Boneh 2021), the mean of what the first
layer sees, and the directions in which that is long: all pass the vault's door, all are charged to the run.
"""

from __future__ import annotations

import math
from pathlib import Path

from torch import Tensor, nn

from reticent.accounting import Event, Gaussian
from reticent.beforehand import release_once
from reticent.data import Examples
from reticent.data.features.hashing import hashes
from reticent.data.features.statistics import release_mean, release_moments
from reticent.experiments.people import people_of
from reticent.experiments.recipe import Recipe
from reticent.filled import fill, places_to_fill
from reticent.inside import Store, Vault, by_person
from reticent.models.normalising import Centre, fill_of, split_at, statistics_of
from reticent.weighed import weigh
from reticent.whitened import whiten

_PATHS = 81  # channels that scattering makes of one colour, of which only the average sees a flat image


def charges(recipe: Recipe) -> tuple[Event, ...]:
    """What normalising costs: it belongs to the guarantee of the run, which is planned before anything is released.

    >>> charges(Recipe(centre=50.0))
    (Gaussian(noise_multiplier=50.0),)
    >>> len(charges(Recipe(statistics_noise=8.0)))
    2
    >>> len(charges(Recipe(statistics_noise=8.0, features="hashed-words")))
    1
    """
    fill = (Gaussian(recipe.fill_noise),) if recipe.fill_noise is not None else ()
    releases = 1 if _of_words(recipe) else 2
    statistics = (Gaussian(recipe.statistics_noise),) * releases if recipe.statistics_noise is not None else ()
    after = tuple(Gaussian(noise) for noise in (recipe.centre, recipe.whiten) if noise is not None)
    return fill + statistics + after


def normalise(model: nn.Module, private: Examples, recipe: Recipe, folder: Path | None) -> None:
    """Fill the layers of a recipe's network that normalise, each from what those before it leave."""
    people = people_of(recipe, private)
    if recipe.fill_noise is not None:
        places, noise = places_to_fill(private, recipe.fill_noise), recipe.fill_noise
        fill(model, people, places, noise, size=recipe.size, seed=recipe.seed, folder=folder)
    if recipe.statistics_noise is not None and _of_words(recipe):
        weigh(model, people, recipe.statistics_noise, size=recipe.size, seed=recipe.seed, folder=folder)
    elif recipe.statistics_noise is not None:
        colours = int(private.x.shape[1]) // (_PATHS if "scattering" in (recipe.features or "") else 1)
        noise, size = recipe.statistics_noise, recipe.size
        standardise(model, people, noise, colours, size=size, seed=recipe.seed, folder=folder)
    if recipe.centre is not None:
        centre(model, people, recipe.centre, size=recipe.size, seed=recipe.seed, folder=folder)
    if recipe.whiten is not None:
        whiten(model, people, recipe.whiten, size=recipe.size, seed=recipe.seed, folder=folder)


def _of_words(recipe: Recipe) -> bool:
    return recipe.features is not None and hashes(recipe.features) is not None


def standardise(
    model: nn.Module,
    private: Examples | Store,
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
    length, before = math.sqrt(colours), fill_of(model)

    def release(vault: Vault) -> dict[str, Tensor]:
        moments = release_moments(
            vault,
            mean_limit=length / 2,
            square_limit=length / 4,
            noise_multiplier=noise_multiplier,
            size=size,
            before=before,
        )
        return {"mean": moments.mean, "std": moments.std}

    released = release_once("statistics", by_person(private), (Gaussian(noise_multiplier),) * 2, release, seed, folder)
    layer = statistics_of(model)
    layer.mean.copy_(released["mean"].reshape(layer.mean.shape))
    layer.std.copy_(released["std"].reshape(layer.std.shape))


def centre(
    model: nn.Module,
    private: Examples | Store,
    noise_multiplier: float,
    *,
    size: int | None = None,
    seed: int | None,
    folder: Path | None,
) -> None:
    """Set the model's centre to a noisy mean."""
    before, middle = split_at(Centre, model)
    # Normalised features are about this long; pixels between 0 and 1 are shorter; anything longer is cut.
    limit = math.sqrt(middle.mean.numel())

    def release(vault: Vault) -> dict[str, Tensor]:
        return {"mean": release_mean(vault, before, limit=limit, noise_multiplier=noise_multiplier, size=size)}

    allowed = (Gaussian(noise_multiplier),)
    middle.mean.copy_(release_once("centre", by_person(private), allowed, release, seed, folder)["mean"])
