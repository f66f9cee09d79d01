"""Whitened scattering: logarithms of it, in colours as eyes have them, whitened as synthetic images are.

A linear model under noise wants few numbers, none of which drowns the others. Scattering is far from that: brightness
and contrast fill most of its length. What fills it is much the same in images that are made by chance: their covariance
whitens other images too, and none of those is looked at for it. Dead leaves look like photographs, strokes like digits.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from reticent.data.features.beside import LENGTH
from reticent.data.features.kept import kept
from reticent.data.features.leaves import OPPONENT, dead_leaves
from reticent.data.features.scattering import Scattering
from reticent.data.features.strokes import strokes
from reticent.data.features.threads import threads_inside
from reticent.data.loading.arrays import Array, fingerprint
from reticent.errors import DataError

OFFSET = 0.3  # of a path's usual value: below it the logarithm is nearly straight, so that noise is not blown up
_FLOOR = 1e-3  # of the largest variance: what varies less is not blown up to the same length
_TOGETHER = 64
_SMALLEST, _LARGEST = 16, 64  # pixels
_COORDINATES = 30_000  # of all synthetic images they take 6 GB
_ROUNDING = 1e-9  # of the largest variance
_VERSION = 1  # part of the name of what is kept: raise it when synthetic images, paths or constants change
SYNTHETIC = {"leaves": dead_leaves, "strokes": strokes}


class Whitened:
    """So many numbers for each image, as a row of length 8, of scattering over so many octaves or over several beside.

    With `mirror` an image and its mirror image have the same. There are `numbers` of them, or as many as there are
    coordinates or synthetic images to tell apart. What is known of those is made once, in minutes, and kept in the
    folder for caches.

    >>> Whitened((3, 16, 16), scales=(2,), numbers=20, synthetic=40)(torch.rand(2, 3, 16, 16)).shape
    torch.Size([2, 20])
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        *,
        scales: tuple[int, ...] = (2, 1),
        mirror: bool = False,
        like: str = "leaves",
        numbers: int = 3000,
        synthetic: int = 4000,
    ):
        check_shape("whitened scattering", shape)
        self.shape, self.scales, self.mirror = shape, scales, mirror
        self.like, self.synthetic = like, synthetic
        self._transforms = [Scattering(shape[1:], scales=scale) for scale in scales]
        coordinates = sum(part[0].numel() for part in self._paths(torch.zeros(1, *shape), self._transforms))
        if coordinates > _COORDINATES:
            raise DataError(
                f"whitened scattering of images of {shape} has {coordinates:,} coordinates, and more than "
                f"{_COORDINATES:,} take too much memory: make the images smaller, or take scattering-normalised"
            )
        self.numbers = min(numbers, coordinates, synthetic - 1)
        settings = (
            f"Whitened({shape}, scales={scales}, mirror={mirror}, like={like}, numbers={self.numbers}, "
            f"synthetic={synthetic}), version {_VERSION}"
        )
        known = kept(settings, (self.numbers + 2, coordinates), self._learn, lambda: None)
        self._usual, self._middle, self._whiten = known[0], known[1], known[2:].T.contiguous()
        self._made = f"{settings}, {fingerprint(known.numpy())}"

    def __repr__(self) -> str:
        return self._made  # with what was found: rows are kept under it

    @torch.no_grad()
    def __call__(self, images: Tensor) -> Tensor:
        """Features of a batch of images (N, C, H, W), values cut to 0 to 1, each image by itself."""
        logarithms = _logarithms(self._paths(images.clamp(0, 1), self._transforms), self._usual)
        return LENGTH * functional.normalize((logarithms - self._middle) @ self._whiten, dim=1)

    @torch.no_grad()
    def _learn(self, answers: Array) -> None:
        """What is usual for each path, the mean of logarithms, and the whitening, all of synthetic images.

        In double precision: directions that images vary along nearly alike would come out otherwise on another machine,
        and a model that was trained on some directions would be asked in others.
        """
        with threads_inside(1):
            exact = [Scattering(self.shape[1:], scales=scale, dtype=torch.float64) for scale in self.scales]
            images = torch.split(SYNTHETIC[self.like](self.synthetic, self.shape), _TOGETHER)
            some = zip(*(self._paths(batch, exact) for batch in images), strict=True)
            paths = [torch.cat(part) for part in some]
        usual = torch.cat([_usual(part) for part in paths])
        logarithms = _logarithms(paths, usual)
        answers[0], answers[1] = usual.numpy(), logarithms.mean(0).numpy()
        answers[2:] = whitening(logarithms - logarithms.mean(0), self.numbers).T.numpy()

    def _paths(self, images: Tensor, transforms: Sequence[Scattering]) -> list[Tensor]:
        """Scattering of each opponent colour, of an image and its mirror on average: (N, colours, paths, H, W) each."""
        count, colours = images.shape[:2]
        seen = images.to(transforms[0].dtype)
        if colours == 3:
            seen = torch.einsum("ij,njhw->nihw", OPPONENT.to(seen.dtype), seen)
        parts = [
            (transform(seen) + transform(seen.flip(3))) / 2 if self.mirror else transform(seen)
            for transform in transforms
        ]
        return [part.reshape(count, colours, part.shape[1] // colours, *part.shape[2:]) for part in parts]


def check_shape(features: str, shape: tuple[int, int, int]) -> None:
    """Refuse images that these features, which are whitened as synthetic images are, cannot be made of."""
    if shape[0] not in (1, 3):
        raise DataError(f"{features} needs images of 1 or 3 colours, not {shape[0]}")
    if not _SMALLEST <= min(shape[1:]) <= max(shape[1:]) <= _LARGEST:
        raise DataError(
            f"{features} needs images of {_SMALLEST} to {_LARGEST} pixels on each side, not {shape[1:]}: "
            "resize them, or take scattering-normalised"
        )


def photographs(shape: tuple[int, int, int]) -> Whitened:
    """For images of things that may face either way: three octaves, and the same for a mirror image."""
    return Whitened(shape, scales=(3,), mirror=True)


def writing(shape: tuple[int, int, int]) -> Whitened:
    """For digits and letters, straightened before: two octaves, whitened as pen strokes are."""
    return Whitened(shape, scales=(2,), like="strokes")


def _usual(paths: Tensor) -> Tensor:
    """How large each path is on average, of order 0 how much it varies, as one number for each coordinate."""
    usual = paths.abs().mean((0, 3, 4), keepdim=True)[0]
    usual[:, 0] = paths[:, :, 0].std((0, 2, 3))[:, None, None]
    return usual.expand(paths.shape[1:]).flatten()


def _logarithms(parts: Sequence[Tensor], usual: Tensor) -> Tensor:
    """Every path in its usual values, logarithms of all but order 0, which may be below zero: (N, coordinates)."""
    rows = []
    units_of = torch.split(usual, [part.shape[1:].numel() for part in parts])
    for paths, units in zip(parts, units_of, strict=True):
        scaled = paths / units.reshape(paths.shape[1:])
        rows.append(torch.cat([scaled[:, :, :1], (scaled[:, :, 1:].clamp(min=0) + OFFSET).log()], 2).flatten(1))
    return torch.cat(rows, 1)


def whitening(rows: Tensor, numbers: int) -> Tensor:
    """The directions in which centred rows vary most, each scaled to vary alike; those above the floor, that is.

    Found by the products of rows with each other, which are fewer than those of coordinates. Which way a direction
    points is settled by the sum of its entries; what only rounding made gets no length.

    >>> whitening(torch.tensor([[2.0, 0.0], [-2.0, 0.0]], dtype=torch.float64), 2).abs().round(decimals=2)
    tensor([[0.5000, 0.0000],
            [0.0000, 0.0000]], dtype=torch.float64)
    """
    variances, shares = torch.linalg.eigh(rows @ rows.T / len(rows))
    variances, shares = variances.flip(0)[:numbers], shares.flip(1)[:, :numbers]
    real = variances > _ROUNDING * variances[0]
    directions = rows.T @ shares / (len(rows) * torch.where(real, variances, 1.0)).sqrt()
    directions = torch.where(directions.sum(0) < 0, -directions, directions)
    scaled: Tensor = directions / (variances + _FLOOR * variances[0]).sqrt()
    return torch.where(real, scaled, 0.0)
