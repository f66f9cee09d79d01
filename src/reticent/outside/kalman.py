"""DiSK: noisy gradients filtered by a simplified Kalman filter (Zhang et al. 2025); it sees released numbers only."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from reticent.errors import require
from reticent.inside import RoundSettings
from reticent.outside.directions import Remembered


@dataclass(frozen=True)
class Kalman:
    """A running estimate of the gradient, which each released gradient corrects by a share, the `gain` (kappa).

    The paper's measurement mixes the gradients here and at a place ahead, x + gamma (x - last x). With gamma =
    (1 - kappa) / kappa the one here has no weight: then one gradient is asked for, ahead, and this is that case.
    """

    gain: float = 0.7

    def __post_init__(self) -> None:
        require(0 < self.gain <= 1, f"gain must be above 0 and at most 1, not {self.gain}")

    @property
    def ahead(self) -> float:
        """How far beyond the last step the gradient is asked for, in steps (gamma).

        >>> Kalman(0.5).ahead
        1.0
        """
        return (1 - self.gain) / self.gain

    def place(self, here: Tensor, remembered: Remembered) -> Tensor:
        """Beyond the place that was reached, as far again in the direction of the last kept step as `ahead` says.

        >>> import torch
        >>> Kalman(0.5).place(torch.tensor([3.0]), {"from": torch.tensor([1.0]), "estimate": torch.zeros(1)})
        tensor([5.])
        """
        return here + self.ahead * (here - remembered["from"]) if remembered else here

    def follow(
        self, released: Tensor, settings: RoundSettings, here: Tensor, remembered: Remembered
    ) -> tuple[Tensor, Remembered]:
        """(1 - kappa) estimate + kappa gradient; the first gradient is the first estimate."""
        found = released / settings.batch_size
        if remembered:
            found = (1 - self.gain) * remembered["estimate"] + self.gain * found
        return found, {"estimate": found.clone(), "from": here.clone()}
