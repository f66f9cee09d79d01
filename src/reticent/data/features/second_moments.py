"""Second moments of private rows, released with noise, and the directions that stand out of it.

Every row counts with length 1, so its products with itself have length 1 too, and what one example can change is known
beforehand (Dwork, Talwar, Thakurta & Zhang 2014, "Analyze Gauss").
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from scipy.linalg import eigh
from torch import Tensor

from reticent.errors import DataError
from reticent.inside import Drawn, Everyone, GaussianNoise, RoundSettings, Vault
from reticent.inside.each_row import each_row
from reticent.inside.labelled_rows import ROUNDED
from reticent.inside.least_squares import folded, unfolded
from reticent.inside.persons import weighted_rows

_TOGETHER = 2048  # rows: in float64 they take a quarter of what the moments take, at most
_SHORTEST = 1e-30  # shorter rows stay as short as they are: the squares of their numbers would be rounded away
_MARGIN = 1.02  # by which a direction must stand out of the noise
_MOST = 64  # directions that are looked for
FLOOR = 20.0
"""Directions are shrunk towards so many times what a direction has on average."""


@dataclass(frozen=True, eq=False)
class SecondMoments:
    """The sum over examples of products of a row's numbers, each row scaled to length 1: half of a matrix, as a vector.

    Where examples are persons, a person counts with the mean over rows.
    """

    before: Callable[[Tensor], Tensor]
    """What is made of an input first; public, and of each by itself."""
    wide: int

    @property
    def sensitivity(self) -> float:
        """Of a row of length 1 the products have length 1, as `folded` writes them."""
        return ROUNDED

    @torch.no_grad()
    def answer(self, taken: Drawn) -> Tensor:
        """Add up the products; a row that is not finite counts nothing."""
        total = torch.zeros(self.wide, self.wide, dtype=torch.float64)
        for batch in taken.batches():
            x, weights = weighted_rows(batch)
            for some, weigh in zip(torch.split(x, _TOGETHER), torch.split(weights, _TOGETHER), strict=True):
                rows = self._rows(some)
                total += rows.T @ (rows * weigh[:, None])
        return folded(total)

    def _rows(self, x: Tensor) -> Tensor:
        """Rows of length 1, or 0."""
        found = each_row(self.before, x)
        rows = found.reshape(len(found), -1).double().cpu()
        if rows.shape != (len(x), self.wide):
            raise DataError(f"whitening is for {self.wide} numbers of each example, not {tuple(found.shape[1:])}")
        lengths = rows.norm(dim=1, keepdim=True)
        return torch.where(torch.isfinite(lengths), rows / lengths.clamp(min=_SHORTEST), 0.0)


def release_second_moments(
    vault: Vault, before: Callable[[Tensor], Tensor], wide: int, *, noise_multiplier: float, size: int | None = None
) -> Tensor:
    """Release the sum of all rows' products, as a symmetric matrix: one Gaussian release in the ledger."""
    size = len(vault) if size is None else size
    draw = vault.draw(Everyone(), RoundSettings(size, size, 1.0, noise_multiplier))
    released = vault.release(vault.ask(SecondMoments(before, wide), draw), GaussianNoise(noise_multiplier))
    return unfolded(released.double(), wide)


def standing_out(moments: Tensor, noise: float, size: int) -> tuple[Tensor, Tensor]:
    """The directions that stand out of the noise, as rows, and what share of each should be taken away.

    Noise alone has a largest eigenvalue of noise * sqrt(2 wide); beyond it, what an eigenvalue would be without noise
    is known (Benaych-Georges & Nadakuditi 2011). Such a direction is shrunk so that it has about as much as `FLOOR`
    times the average direction has; all others, which noise hides, are left as they are.

    >>> directions, shares = standing_out(torch.diag(torch.tensor([0.1, 900.0, 0.2])).double(), 0.5, 900)
    >>> directions.abs(), bool(shares[0] > 0)
    (tensor([[0., 1., 0.]]), True)
    """
    wide = len(moments)
    values, vectors = eigh(moments.numpy(), subset_by_index=(max(0, wide - _MOST), wide - 1))
    seen, edge = torch.from_numpy(values), noise * math.sqrt(2 * wide)
    true = (seen + (seen.square() - edge**2).clamp(min=0).sqrt()) / 2
    there, floor = seen > _MARGIN * edge, FLOOR * size / wide
    shares = 1 - (floor / (floor + true)).sqrt()
    return torch.from_numpy(vectors.T.copy())[there].float(), shares[there].float()
