"""Unmixed: gradients out of released mixtures of rounds, with noise that later rounds take away again (BandMF)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from reticent.inside import RoundSettings
from reticent.inside.banded import band, reach
from reticent.outside.directions import Remembered


@dataclass(frozen=True)
class Unmixed:
    """The sum of a round from the released mixture and the sums made of the mixtures before it, over the batch size."""

    bands: int = 8

    def place(self, here: Tensor, remembered: Remembered) -> Tensor:  # noqa: ARG002 - nothing is foreseen
        """Where the model is."""
        return here

    def follow(
        self, released: Tensor, settings: RoundSettings, here: Tensor, remembered: Remembered
    ) -> tuple[Tensor, Remembered]:
        """Solve C x = y for the last round; the divisor is the expected batch size.

        >>> two, now = Unmixed(bands=2), RoundSettings(100, 10, 1.0, 1.0)
        >>> first, last = (torch.tensor([weight], dtype=torch.float64) for weight in band(2))
        >>> found, known = two.follow(first * 20, now, torch.zeros(1), {})
        >>> found, two.follow(first * 50 + last * 20, now, torch.zeros(1), known)[0]
        (tensor([2.]), tensor([5.]))
        """
        own, *others = band(self.bands)
        found = released.double()
        made = remembered["made"] if remembered else found.new_zeros(self.bands - 1, len(found))
        for weight, past in zip(others, made, strict=True):
            found = found - weight * past
        found = found / own
        kept = torch.cat([found[None], made])[: self.bands - 1]
        expected = reach(settings, self.bands) * settings.size / self.bands
        return (found / expected).to(here.dtype), {"made": kept}
