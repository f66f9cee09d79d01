"""Unmixed: gradients out of released mixtures of rounds, with noise that later rounds take away again."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from reticent.inside import RoundSettings
from reticent.inside.mixed import Mixing
from reticent.outside.directions import Remembered


@dataclass(frozen=True)
class Unmixed:
    """The sum of a round from the released mixture and the sums made of the mixtures before it, over the batch size."""

    mixing: Mixing

    def place(self, here: Tensor, remembered: Remembered) -> Tensor:  # noqa: ARG002 - nothing is foreseen
        """Where the model is."""
        return here

    def follow(
        self, released: Tensor, settings: RoundSettings, here: Tensor, remembered: Remembered
    ) -> tuple[Tensor, Remembered]:
        """Solve C x = y for the last round; the divisor is the expected batch size.

        >>> import torch
        >>> from reticent.inside import Bands
        >>> two, now = Unmixed(Bands(2, matrix="square-root")), RoundSettings(100, 10, 1.0, 1.0)
        >>> first, last = (torch.tensor([weight], dtype=torch.float64) for weight in two.mixing.numbers)
        >>> found, known = two.follow(first * 20, now, torch.zeros(1), {})
        >>> found, two.follow(first * 50 + last * 20, now, torch.zeros(1), known)[0]
        (tensor([2.]), tensor([5.]))
        """
        mixing, found = self.mixing, released.double()
        made = remembered["made"] if remembered else found.new_zeros(len(mixing.weights), len(found))
        for weight, past in zip(mixing.weights, made, strict=True):
            found = found - weight * past
        found = found / mixing.own
        return (found / mixing.expected(settings)).to(here.dtype), {"made": mixing.after(made, found)}
