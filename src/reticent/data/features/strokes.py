"""Pen strokes: synthetic images of one to three curves, as wide and as large as written digits and letters are.

Made by chance and nothing else, as dead leaves are: what is learned of them is learned of no example. A curve is a
cubic Bezier curve; the next one mostly begins where the last has ended, as a hand does.
"""

from __future__ import annotations

import torch
from torch import Tensor

from reticent.data.features.deskew import Deskew
from reticent.errors import DataError

_CURVES, _POINTS, _JOINED = 3, 40, 0.7
_THINNEST, _SPREAD = 0.3, 1.0  # half of a stroke's width, in pixels of an image of _SIDE
_SIDE, _BOX, _NARROWER = 28, 19.0, 0.75  # writing fills a box, and is taller than wide
_TOGETHER = 200


def strokes(count: int, shape: tuple[int, int, int], *, seed: int = 0) -> Tensor:
    """So many synthetic images of one colour between 0 and 1, white on black, centred and straightened.

    In double precision and rounded to 256 shades, so that they are the same on every machine.

    >>> strokes(2, (1, 28, 28)).shape
    torch.Size([2, 1, 28, 28])
    """
    if shape[0] != 1:
        raise DataError(f"strokes have one colour, and these images {shape[0]}: take scattering-whitened")
    generator = torch.Generator().manual_seed(seed)
    parts = [_some(min(_TOGETHER, count - start), shape[1:], generator) for start in range(0, count, _TOGETHER)]
    straight: Tensor = Deskew()(torch.cat(parts))
    return (255 * straight.clamp(0, 1)).round() / 255


def _some(count: int, shape: tuple[int, int], generator: torch.Generator) -> Tensor:
    height, width = shape
    scale = min(shape) / _SIDE
    thick = scale * (_THINNEST + _SPREAD * torch.rand(count, 1, 1, generator=generator, dtype=torch.float64))
    line = _written(count, generator)
    extent = (line.amax(1) - line.amin(1)).amax(1)[:, None, None]
    line = (line - line.mean(1, keepdim=True)) * (_BOX * scale - 2 * thick) / extent
    across = torch.arange(width) - (width - 1) / 2 - line[:, :, 0, None]
    down = torch.arange(height) - (height - 1) / 2 - line[:, :, 1, None]
    away = (across.square()[:, :, None] + down.square()[:, :, :, None]).amin(1).sqrt()
    return (1.3 - (away - thick)).clamp(0, 1)[:, None]


def _written(count: int, generator: torch.Generator) -> Tensor:
    """Points of one to three curves for each image: (N, points, 2); a curve that is not there repeats the first."""
    along = torch.linspace(0, 1, _POINTS, dtype=torch.float64)[:, None]
    back = 1 - along
    weights = torch.cat([back**3, 3 * along * back**2, 3 * along**2 * back, along**3], 1)
    how_many = 1 + (_CURVES * torch.rand(count, generator=generator)).long()
    corners = torch.rand(count, _CURVES, 4, 2, generator=generator, dtype=torch.float64)
    corners[..., 0] *= _NARROWER
    goes_on = torch.rand(count, _CURVES - 1, generator=generator) < _JOINED
    corners[:, 1:, 0] = torch.where(goes_on[:, :, None], corners[:, :-1, 3], corners[:, 1:, 0])
    curves = torch.einsum("pk,nckd->ncpd", weights, corners)
    there = torch.arange(_CURVES) < how_many[:, None]
    return torch.where(there[:, :, None, None], curves, curves[:, :1]).flatten(1, 2)
