"""Random convolutional features (Coates, Ng & Lee 2011): filters are patches of synthetic images, so no data is seen.

Scattering says how strong edges of each size and direction are; what small patches of an image have in common with
patches drawn at random says something else, and side by side they know far more than either. Each patch is centred,
scaled and whitened, compared with every filter, and what it has in common with it or with its negative, beyond a
threshold, is averaged over quarters of the image. Filters, whitening and what is usual come from dead leaves.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from reticent.data.features.beside import LENGTH
from reticent.data.features.kept import kept
from reticent.data.features.leaves import dead_leaves
from reticent.data.features.threads import threads_inside
from reticent.data.features.whitened import check_shape, whitening
from reticent.data.loading.arrays import Array, fingerprint
from reticent.errors import DataError

_FLAT = 0.01  # of the range of an image: what varies less is not blown up
_FLOOR = 0.01  # added to the variances of even patches, which are 1 on average
_PLACES = 25  # patches of each synthetic image, from which filters are drawn and by which patches are whitened
_QUARTERS = 4
_TOGETHER = 8  # images: what they need is used again, and not asked of the system anew
_VERSION = 1  # part of the name of what is kept: raise it when synthetic images or constants change


class RandomPatches:
    """So many numbers for each image, as a row of length 8: what its patches have in common with so many filters.

    With `mirror` an image and its mirror image have the same. What is known of synthetic images is made once, in a
    minute, and kept in the folder for caches.

    >>> RandomPatches((3, 16, 16), filters=20, numbers=30, synthetic=40)(torch.rand(2, 3, 16, 16)).shape
    torch.Size([2, 30])
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        *,
        filters: int = 400,
        side: int = 6,
        threshold: float = 1.0,
        mirror: bool = True,
        numbers: int = 3000,
        synthetic: int = 4000,
    ):
        check_shape("patches", shape)
        self.shape, self.side, self.threshold, self.mirror = shape, side, threshold, mirror
        self.synthetic, coordinates = synthetic, 2 * _QUARTERS * filters
        self.numbers = min(numbers, coordinates, synthetic - 1)
        settings = (
            f"RandomPatches({shape}, filters={filters}, side={side}, threshold={threshold}, mirror={mirror}, "
            f"numbers={self.numbers}, synthetic={synthetic}), version {_VERSION}"
        )
        drawn = kept(f"{settings}, filters", (filters + 1, shape[0] * side**2), self._draw, lambda: None)
        self._middle, self._filters = drawn[0], drawn[1:].T.contiguous()
        known = kept(settings, (self.numbers + 1, coordinates), self._learn, lambda: None)
        self._usual, self._whiten = known[0], known[1:].T.contiguous()
        self._made = f"{settings}, {fingerprint(drawn.numpy())}, {fingerprint(known.numpy())}"

    def __repr__(self) -> str:
        return self._made  # with what was found: rows are kept under it

    @torch.no_grad()
    def __call__(self, images: Tensor) -> Tensor:
        """Features of a batch of images (N, C, H, W), values cut to 0 to 1, each image by itself."""
        if images.shape[1:] != self.shape:  # quarters of any image could be averaged, and mean something else
            raise DataError(f"expected images (N, {', '.join(map(str, self.shape))}), got {tuple(images.shape)}")
        parts = torch.split(images.clamp(0, 1).to(self._middle.dtype), _TOGETHER)
        rows = [(self._in_common(some, self._middle, self._filters) - self._usual) @ self._whiten for some in parts]
        return LENGTH * functional.normalize(torch.cat(rows), dim=1)

    @torch.no_grad()
    def _draw(self, answers: Array) -> None:
        """The middle of even patches of synthetic images, and some of them, whitened, of length 1.

        Filters are turned by the whitening once more, so that patches need not be whitened one by one.
        """
        rng = torch.Generator().manual_seed(0)
        drawn = []
        for images in torch.split(dead_leaves(self.synthetic, self.shape), _TOGETHER):
            places = functional.unfold(images, self.side)
            at = torch.randint(places.shape[2], (len(places), 1, _PLACES), generator=rng)
            drawn.append(places.gather(2, at.expand(-1, places.shape[1], -1)).transpose(1, 2).flatten(0, 1))
        some = _even(torch.cat(drawn))
        middle = some.mean(0)
        variances, ways = torch.linalg.eigh((some - middle).T @ (some - middle) / len(some))
        turn = ways * (variances + _FLOOR).rsqrt() @ ways.T
        chosen = some[torch.randperm(len(some), generator=rng)[: len(answers) - 1]] - middle
        answers[0], answers[1:] = middle.numpy(), (functional.normalize(chosen @ turn, dim=1) @ turn).numpy()

    @torch.no_grad()
    def _learn(self, answers: Array) -> None:
        """What synthetic images have on average, and the whitening of it, in double precision: see Whitened."""
        middle, filters = self._middle.double(), self._filters.double()
        with threads_inside(1):
            images = torch.split(dead_leaves(self.synthetic, self.shape), _TOGETHER)
            rows = torch.cat([self._in_common(some, middle, filters) for some in images])
        answers[0] = rows.mean(0).numpy()
        answers[1:] = whitening(rows - rows.mean(0), self.numbers).T.numpy()

    def _in_common(self, images: Tensor, middle: Tensor, filters: Tensor) -> Tensor:
        found = self._averages(images, middle, filters)
        return (found + self._averages(images.flip(3), middle, filters)) / 2 if self.mirror else found

    def _averages(self, images: Tensor, middle: Tensor, filters: Tensor) -> Tensor:
        """What patches have in common with filters and their negatives: roots of averages over quarters, (N, all)."""
        found = (_even(functional.unfold(images, self.side).transpose(1, 2)) - middle) @ filters
        both = torch.cat([found - self.threshold, -found - self.threshold], 2).relu_()
        places = both.transpose(1, 2).view(*both.shape[::2], *(side - self.side + 1 for side in images.shape[2:]))
        return functional.adaptive_avg_pool2d(places, math.isqrt(_QUARTERS)).flatten(1).sqrt_()


def few(shape: tuple[int, int, int]) -> RandomPatches:
    """The 1,000 numbers that vary most: beside 3,000 others they are few enough for second moments to whiten by."""
    return RandomPatches(shape, numbers=1000)


def _even(patches: Tensor) -> Tensor:
    """Without the mean of each, and scaled by how much it varies."""
    centred = patches - patches.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + _FLAT**2).sqrt()
