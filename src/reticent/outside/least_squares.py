"""Solved: the weights of a linear layer out of released statistics, by ridge regression."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from reticent.errors import require
from reticent.inside import RoundSettings, Statistics
from reticent.inside.least_squares import unfolded
from reticent.outside.solution import Solution

LEAST_RIDGE = 1e-9
"""Of the largest eigenvalue: what is left where there is no noise."""


@dataclass(frozen=True)
class Solved(Solution):
    """To the solution of least squares.

    The ridge is `ridge` times what noise adds to an eigenvalue at most, for the most part: for d rows and columns, of
    deviation s off the diagonal, 2 s sqrt(d). Eigenvalues below 0 are noise, and count as 0.
    """

    balance: float = 2.0
    ridge: float = 0.5
    scale: float = 10.0
    """What the solution is multiplied by: its outputs are near 0 and 1, between which a softmax hardly tells apart."""

    def __post_init__(self) -> None:
        require(0 <= self.ridge < math.inf, f"ridge must be 0 or more and finite, not {self.ridge}")
        require(0 < self.scale < math.inf, f"scale must be above 0 and finite, not {self.scale}")

    def solve(self, mean: Tensor, noise: float, settings: RoundSettings, parameters: int) -> Tensor:
        """Ridge regression on the mean of the statistics."""
        wide = math.isqrt(2 * (len(mean) - parameters))  # d (d + 1) / 2 numbers are left beside the products
        outputs = parameters // wide
        half = len(mean) - wide * outputs
        gram, products = unfolded(mean[:half], wide), mean[half:].reshape(wide, outputs)
        values, vectors = torch.linalg.eigh(gram)
        values = values.clamp(min=0.0)
        deviation = noise * Statistics(self.balance).sensitivity(outputs)
        added = self.ridge * deviation * math.sqrt(2 * wide) + LEAST_RIDGE * float(values[-1]) + 1e-30
        found = vectors @ ((vectors.T @ (products / self.balance)) / (values + added)[:, None])
        weights = found.T * (self.scale / math.sqrt(2))  # a row was made of x / C and 1, over the root of 2
        return torch.cat([(weights[:, :-1] / settings.max_grad_norm).reshape(-1), weights[:, -1]])
