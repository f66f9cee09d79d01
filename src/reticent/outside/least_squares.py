"""Solved: the weights of a linear layer out of released statistics, by ridge regression."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from reticent.errors import require
from reticent.inside import RoundSettings, Statistics
from reticent.inside.least_squares import unfolded
from reticent.outside.directions import Remembered

LEAST_RIDGE = 1e-9
"""Of the largest eigenvalue: what is left where there is no noise."""


@dataclass(frozen=True)
class Solved:
    """From where the model is to the solution, so that a step of length 1 is there; rounds are averaged.

    The ridge is `ridge` times what noise adds to an eigenvalue at most, for the most part: for d rows and columns, of
    deviation s off the diagonal, 2 s sqrt(d). Eigenvalues below 0 are noise, and count as 0.
    """

    balance: float = 2.0
    ridge: float = 0.5
    scale: float = 10.0
    """What the solution is multiplied by: its outputs are near 0 and 1, between which a softmax hardly tells apart."""
    whole: ClassVar[bool] = True
    """It is given all that was released, not only as much as there are weights."""

    def __post_init__(self) -> None:
        require(0 <= self.ridge < math.inf, f"ridge must be 0 or more and finite, not {self.ridge}")
        require(0 < self.scale < math.inf, f"scale must be above 0 and finite, not {self.scale}")

    def place(self, here: Tensor, remembered: Remembered) -> Tensor:  # noqa: ARG002 - nothing depends on the place
        """Where the model is."""
        return here

    def follow(
        self, released: Tensor, settings: RoundSettings, here: Tensor, remembered: Remembered
    ) -> tuple[Tensor, Remembered]:
        """What is to be taken away from the weights to be at the solution, and the sum of all that was released."""
        total = released.detach().double().cpu()
        count = torch.ones(1, dtype=torch.float64)
        if remembered:
            total, count = total + remembered["total"], count + remembered["count"]
        wide = math.isqrt(2 * (len(total) - len(here)))  # d (d + 1) / 2 numbers are left beside the products
        outputs = len(here) // wide
        half = len(total) - wide * outputs
        gram, products = unfolded(total[:half] / count, wide), (total[half:] / count).reshape(wide, outputs)
        noise = settings.noise_multiplier * Statistics(self.balance).sensitivity(outputs) / math.sqrt(float(count))
        values, vectors = torch.linalg.eigh(gram)
        values = values.clamp(min=0.0)
        added = self.ridge * noise * math.sqrt(2 * wide) + LEAST_RIDGE * float(values[-1]) + 1e-30
        found = vectors @ ((vectors.T @ (products / self.balance)) / (values + added)[:, None])
        weights = found.T * (self.scale / math.sqrt(2))  # a row was made of x / C and 1, over the root of 2
        solution = torch.cat([(weights[:, :-1] / settings.max_grad_norm).reshape(-1), weights[:, -1]])
        return here - solution.to(here), {"total": total, "count": count}
