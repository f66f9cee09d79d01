"""Scattering for photographs: logarithms of it, in colours as eyes have them, whitened as synthetic images are.

A linear model under noise wants few numbers, none of which drowns the others. Scattering of photographs is far from
that: brightness and contrast fill most of its length. What fills it is the same in dead leaves, which are made by
chance: their covariance whitens photographs too, and no photograph is looked at for it.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from reticent.data.features.kept import kept
from reticent.data.features.leaves import OPPONENT, dead_leaves
from reticent.data.features.scattering import Scattering
from reticent.data.features.threads import threads_inside
from reticent.data.loading.arrays import Array
from reticent.errors import DataError

_OFFSET = 0.3  # of a path's usual value: below it the logarithm is nearly straight, so that noise is not blown up
_FLOOR = 1e-3  # of the largest variance: what varies less is not blown up to the same length
_LENGTH = 8.0  # of a row, as of hashed words: what the rule for the step is right for
_TOGETHER = 64
_SMALLEST = 16


class Photographs:
    """So many numbers for each image, as a row of length 8: the same for an image and for its mirror image.

    What is known of synthetic images is made once, in a minute, and kept in the folder for caches.

    >>> Photographs((3, 16, 16), scales=2, numbers=20, leaves=40)(torch.rand(2, 3, 16, 16)).shape
    torch.Size([2, 20])
    """

    def __init__(self, shape: tuple[int, int, int], *, scales: int = 3, numbers: int = 3000, leaves: int = 4000):
        if shape[0] not in (1, 3):
            raise DataError(f"scattering-photos needs images of 1 or 3 colours, not {shape[0]}")
        if min(shape[1:]) < _SMALLEST:
            raise DataError(
                f"scattering-photos needs images of at least {_SMALLEST} pixels on each side, not {shape[1:]}: take "
                "scattering-normalised"
            )
        self.shape, self.scales, self.numbers, self.leaves = shape, scales, numbers, leaves
        self._scattering = Scattering(shape[1:], scales=scales)
        coordinates = self._paths(torch.zeros(1, *shape)).flatten(1).shape[1]
        known = kept(repr(self), (numbers + 2, coordinates), self._learn, lambda: None)
        self._usual, self._middle, self._whiten = known[0], known[1], known[2:].T.contiguous()

    def __repr__(self) -> str:
        made = f"scales={self.scales}, numbers={self.numbers}, leaves={self.leaves}, length={_LENGTH:g}"
        return f"Photographs({self.shape}, {made})"

    @torch.no_grad()
    def __call__(self, images: Tensor) -> Tensor:
        """Features of a batch of images (N, C, H, W) with values between 0 and 1, each image by itself."""
        logarithms = self._logarithms(self._paths(images), self._usual)
        return _LENGTH * functional.normalize((logarithms - self._middle) @ self._whiten, dim=1)

    def _paths(self, images: Tensor) -> Tensor:
        """Scattering of each opponent colour, of an image and its mirror on average: (N, colours, paths, H, W)."""
        colours = torch.einsum("ij,njhw->nihw", OPPONENT, images) if self.shape[0] == 3 else images
        found = (self._scattering(colours) + self._scattering(colours.flip(3))) / 2
        return found.reshape(len(images), self.shape[0], -1, *found.shape[2:])

    def _logarithms(self, paths: Tensor, usual: Tensor) -> Tensor:
        """Every path in its usual values, logarithms of all but order 0, which may be below zero: (N, coordinates)."""
        scaled = paths / usual.reshape(paths.shape[1:])
        return torch.cat([scaled[:, :, :1], (scaled[:, :, 1:].clamp(min=0) + _OFFSET).log()], 2).flatten(1)

    @torch.no_grad()
    def _learn(self, answers: Array) -> None:
        """What is usual for each path, the mean of logarithms, and the whitening, all of synthetic images."""
        with threads_inside(1):
            images = dead_leaves(self.leaves, self.shape)
            paths = torch.cat([self._paths(some) for some in torch.split(images, _TOGETHER)])
        usual = paths.abs().mean((0, 3, 4), keepdim=True)[0]
        usual[:, 0] = paths[:, :, 0].std((0, 2, 3))[:, None, None]
        answers[0] = usual.expand(paths.shape[1:]).flatten().numpy()
        logarithms = self._logarithms(paths, torch.from_numpy(answers[0]))
        answers[1] = logarithms.mean(0).numpy()
        answers[2:] = _whitening(logarithms - logarithms.mean(0), self.numbers).T.numpy()


def _whitening(rows: Tensor, numbers: int) -> Tensor:
    """The directions in which centred rows vary most, each scaled to vary alike; those above the floor, that is.

    Of the products of rows with each other, which are fewer than those of coordinates.
    """
    variances, shares = torch.linalg.eigh(rows @ rows.T / len(rows))
    variances, shares = variances.flip(0)[:numbers].clamp(min=1e-12), shares.flip(1)[:, :numbers]
    directions = rows.T @ shares / (len(rows) * variances).sqrt()
    whitening: Tensor = directions / (variances + _FLOOR * variances[0]).sqrt()
    return whitening
