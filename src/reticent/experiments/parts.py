"""The network that a recipe names."""

from __future__ import annotations

import torch
from torch import nn

from reticent import data, models
from reticent.experiments.recipe import Recipe


def model_of(recipe: Recipe, dataset: data.Dataset) -> nn.Module:
    """The network of a (filled) recipe, with the first weights its seed gives.

    >>> sum(p.numel() for p in model_of(Recipe(seed=0).filled(), data.load("digits")).parameters())
    650
    """
    if recipe.seed is not None:
        torch.manual_seed(recipe.seed)
    network = models.build(
        recipe.model or "mlp", inputs=dataset.inputs, classes=dataset.classes, activation=recipe.activation or "tanh"
    )
    if recipe.statistics_noise is not None:
        network = models.with_statistics(network, dataset.inputs)
    return network if recipe.centre is None else models.with_centre(network, dataset.inputs)
