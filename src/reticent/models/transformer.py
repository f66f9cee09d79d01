"""A vision transformer as a public feature extractor, through the optional package `transformers`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from reticent.errors import ModelError


class VitFeatures(nn.Module):
    """Images in [0, 1] to one vector each: resized, scaled to [-1, 1], the class token of the last layer.

    The weights are public and frozen, so what it computes for one example depends on that example alone.
    """

    def __init__(self, transformer: nn.Module, image_size: int):
        super().__init__()
        self.transformer = transformer.eval().requires_grad_(False)
        self.image_size = image_size

    @torch.no_grad()
    def forward(self, images: Tensor) -> Tensor:
        if images.shape[1] == 1:
            images = images.expand(-1, 3, -1, -1)
        size = (self.image_size, self.image_size)
        resized = functional.interpolate(images, size=size, mode="bicubic", align_corners=False, antialias=True)
        tokens: Tensor = self.transformer(pixel_values=2 * resized - 1).last_hidden_state
        return tokens[:, 0]


def vit(checkpoint: str | None = None, **config: Any) -> VitFeatures:
    """A ViT from a local folder or hub name; without one, random weights of the given configuration (for tests)."""
    try:
        transformers = import_module("transformers")
    except ImportError:
        raise ModelError("ViT features need the package transformers: pip install 'reticent[vit]'") from None
    if checkpoint is None:
        model = transformers.ViTModel(transformers.ViTConfig(**config), add_pooling_layer=False)
    else:
        model = transformers.ViTModel.from_pretrained(checkpoint, add_pooling_layer=False)
    return VitFeatures(model, model.config.image_size)
