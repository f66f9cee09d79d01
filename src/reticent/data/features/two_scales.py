"""Scattering at two scales side by side: what is in a patch, and where exactly its edges are."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import group_norm

from reticent.data.features.scattering import Scattering

GROUPS = {1: 9, 2: 27}
"""Of channels that are normalised together, for each number of octaves; 27 as in the papers."""


class TwoScales:
    """Normalised scattering over two octaves and over one, as one vector for each image.

    >>> TwoScales((28, 28))(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 5733])
    """

    def __init__(self, shape: tuple[int, int]):
        self._transforms = [Scattering(shape, scales=scales) for scales in (2, 1)]

    def __repr__(self) -> str:
        return f"TwoScales{tuple(self._transforms)}"

    @torch.no_grad()
    def __call__(self, images: Tensor) -> Tensor:
        """Features of a batch of images (N, C, H, W), each group of channels normalised for each image."""
        parts = [group_norm(transform(images), GROUPS[transform.scales]) for transform in self._transforms]
        return torch.cat([part.flatten(1) for part in parts], dim=1)
