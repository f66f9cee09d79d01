"""The parts that a recipe names: its dataset and its network."""

from __future__ import annotations

import torch
from torch import nn

from reticent import data, models
from reticent.experiments.recipe import Recipe


def dataset_of(recipe: Recipe) -> data.Dataset:
    """The dataset of a recipe.

    >>> dataset_of(Recipe(data="digits")).classes
    10
    """
    return data.load(recipe.data, folder=recipe.data_folder)


def model_of(recipe: Recipe, dataset: data.Dataset) -> nn.Module:
    """The network of a (filled) recipe, with the first weights its seed gives.

    >>> recipe = Recipe(data="digits", seed=0).filled()
    >>> type(model_of(recipe, dataset_of(recipe))).__name__
    'Sequential'
    """
    if recipe.seed is not None:
        torch.manual_seed(recipe.seed)
    return models.build(
        recipe.model or "mlp", inputs=dataset.inputs, classes=dataset.classes, activation=recipe.activation or "tanh"
    )
