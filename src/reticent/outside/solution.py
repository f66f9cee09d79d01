"""Solutions: directions that lead to a place that follows from what was released, instead of a step downhill."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from reticent.inside import RoundSettings
from reticent.outside.directions import Remembered


class Solution(ABC):
    """From where the model is to the solution, so that a step of length 1 is there; rounds are averaged."""

    whole: ClassVar[bool] = True
    """It is given all that was released, as it is, not only as much as there are weights."""

    @abstractmethod
    def solve(self, mean: Tensor, noise: float, settings: RoundSettings, parameters: int) -> Tensor:
        """The parameters, from the mean of all released answers and the noise multiplier that it has."""

    def place(self, here: Tensor, remembered: Remembered) -> Tensor:  # noqa: ARG002 - nothing depends on the place
        """Where the model is."""
        return here

    def follow(
        self, released: Tensor, settings: RoundSettings, here: Tensor, remembered: Remembered
    ) -> tuple[Tensor, Remembered]:
        """What is to be taken away from the weights to be there, and the sum of all that was released."""
        total, count = released.detach().double().cpu(), torch.ones(1, dtype=torch.float64)
        if remembered:
            total, count = total + remembered["total"], count + remembered["count"]
        noise = settings.noise_multiplier / math.sqrt(float(count))
        found = self.solve(total / count, noise, settings, len(here))
        return here - found.to(here), {"total": total, "count": count}
