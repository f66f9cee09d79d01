"""The network that a recipe names."""

from __future__ import annotations

import torch
from torch import nn

from reticent import data, models
from reticent.experiments.factories import is_factory, made_by
from reticent.experiments.recipe import Recipe


def model_of(recipe: Recipe, dataset: data.Dataset) -> nn.Module:
    """The network of a (filled) recipe, with the first weights its seed gives.

    >>> sum(p.numel() for p in model_of(Recipe(seed=0).filled(), data.load("digits")).parameters())
    650
    """
    if recipe.seed is not None:
        torch.manual_seed(recipe.seed)
    own = recipe.model if recipe.model is not None and is_factory(recipe.model) else None
    made = None if own is None else made_by(own, inputs=dataset.inputs, classes=dataset.classes)
    model = blueprint_of(recipe, dataset).build(made)
    if isinstance(model, models.ReviewRnn) and recipe.model == "glove-rnn":
        vectors, _ = data.glove(folder=recipe.data_folder)
        model.embedding.weight.copy_(vectors)
    return model


def blueprint_of(recipe: Recipe, dataset: data.Dataset) -> models.Blueprint:
    """How to build the network of a (filled) recipe again.

    >>> blueprint_of(Recipe(seed=0).filled(), data.load("digits")).inputs
    (1, 8, 8)
    """
    return models.Blueprint(
        model=recipe.model or "linear",
        inputs=dataset.inputs,
        classes=dataset.classes,
        activation=recipe.activation or "tanh",
        statistics=recipe.statistics_noise is not None,
        centre=recipe.centre is not None,
        whiten=recipe.whiten is not None,
        fill=recipe.fill_noise is not None,
        features=recipe.features,
        made_of=dataset.made_of if recipe.features is not None else None,
        buckets=dataset.buckets,
    )
