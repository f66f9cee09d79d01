"""The public numbers of a round: stages are the structure, settings are the numbers."""

from __future__ import annotations

from dataclasses import dataclass

from reticent.errors import SettingError


@dataclass(frozen=True)
class RoundSettings:
    """What one round is run with; every number is declared before it, none is measured on the examples.

    >>> RoundSettings(size=1000, batch_size=50, max_grad_norm=1.0, noise_multiplier=1.1).rate
    0.05
    """

    size: int
    """The public number of examples: rates follow from it. How many there really are only a draw is told."""
    batch_size: float
    max_grad_norm: float
    noise_multiplier: float
    number: int = 0
    """Which round it is."""

    def __post_init__(self) -> None:
        if self.size < 1:
            raise SettingError("there are no examples: a private run needs at least one")
        if not 0 < self.batch_size <= self.size:
            raise SettingError(
                f"batch_size is {self.batch_size:g}, but must lie between 0 and the {self.size} examples"
            )
        if not self.max_grad_norm > 0:
            raise SettingError(f"max_grad_norm must be above 0, not {self.max_grad_norm}")
        if not self.noise_multiplier >= 0:
            raise SettingError(f"noise_multiplier must be 0 or more, not {self.noise_multiplier}")

    @property
    def rate(self) -> float:
        """The chance of one example to take part in a round (q in the papers)."""
        return self.batch_size / self.size
