"""Dead leaves: synthetic images of shapes that cover one another, with edges and shades as photographs have them.

Made by chance and nothing else (Matheron 1968; Lee, Mumford and Huang 2001): what is learned of them is learned of no
example. Sizes fall off as 1 / size^3, which makes the images look alike at every scale, as natural ones do.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

OPPONENT = torch.tensor([[1.0, 1.0, 1.0], [1.0, 0.0, -1.0], [1.0, -2.0, 1.0]], dtype=torch.float64)
OPPONENT /= OPPONENT.norm(dim=1, keepdim=True)
"""Brightness, red against blue, green against both: colours of photographs hardly depend on each other in these."""
_SPREAD = torch.tensor(
    [0.40, 0.12, 0.06], dtype=torch.float64
)  # of brightness and of the two colours, on a scale from 0 to 1
_LEAVES, _SMALLEST, _LARGEST, _MARGIN = 80, 1.5, 24.0, 8.0
_TOGETHER = 32  # images: what they need stays in a processor's cache


def dead_leaves(count: int, shape: tuple[int, int, int], *, seed: int = 0) -> Tensor:
    """So many synthetic images of 1 or 3 colours between 0 and 1.

    In double precision and rounded to 256 shades, so that they are the same on every machine.

    >>> dead_leaves(2, (3, 32, 32)).shape
    torch.Size([2, 3, 32, 32])
    """
    generator = torch.Generator().manual_seed(seed)
    parts = [_some(min(_TOGETHER, count - start), shape, generator) for start in range(0, count, _TOGETHER)]
    return torch.cat(parts)


def _some(count: int, shape: tuple[int, int, int], generator: torch.Generator) -> Tensor:
    colours, height, width = shape
    images = torch.zeros(count, 3, height, width, dtype=torch.float64)
    free = torch.ones(count, 1, height, width, dtype=torch.bool)
    for number in range(_LEAVES):  # from front to back: a pixel keeps the first leaf that covers it
        inside, shade = _leaf(count, (height, width), generator)
        inside |= torch.tensor(number == _LEAVES - 1)  # the last is the ground
        colour = torch.randn(count, 3, generator=generator, dtype=torch.float64) * _SPREAD @ OPPONENT + 0.5
        images = torch.where(inside & free, colour[:, :, None, None] + shade, images)
        free &= ~inside
    blurred = _blur(images).clamp(0, 1)
    seen = blurred if colours == 3 else blurred.mean(1, keepdim=True)
    return (255 * seen).round() / 255


def _leaf(count: int, shape: tuple[int, int], generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Where one leaf of each image is, and how much brighter or darker it gets along and across it."""

    def uniform() -> Tensor:
        return torch.rand(count, 1, 1, 1, generator=generator, dtype=torch.float64)

    def normal(spread: float) -> Tensor:
        return spread * torch.randn(count, 1, 1, 1, generator=generator, dtype=torch.float64)

    few, many = _SMALLEST**-2, _LARGEST**-2
    size = (few - uniform() * (few - many)) ** -0.5
    rows, columns = (torch.arange(side) - uniform() * (side + 2 * _MARGIN) + _MARGIN for side in shape)
    down, across = rows.transpose(2, 3), columns
    turn, longer = math.pi * uniform(), torch.exp(normal(0.5))
    along = (across * turn.cos() + down * turn.sin()) / (size * longer)
    athwart = (down * turn.cos() - across * turn.sin()) / (size / longer)
    kind = uniform()
    disk = along.square() + athwart.square() < 1
    box = torch.maximum(along.abs(), athwart.abs()) < 1
    inside = torch.where(kind < 0.6, disk, box)
    return inside, normal(0.15) * along.clamp(-2, 2) + normal(0.1) * athwart.clamp(-2, 2)


def _blur(images: Tensor) -> Tensor:
    """A little, as a lens does."""
    line = torch.tensor([0.15, 0.7, 0.15], dtype=torch.float64)
    kernel = (line[:, None] * line).expand(3, 1, 3, 3)
    return functional.conv2d(functional.pad(images, (1, 1, 1, 1), mode="reflect"), kernel, groups=3)
