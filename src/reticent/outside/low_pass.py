"""DOPPLER: noisy gradients through a low-pass filter (Zhang et al. 2024); it sees released numbers only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from reticent.errors import require
from reticent.inside import RoundSettings
from reticent.outside.directions import Remembered

LOOKED_AT = 1000
"""Rounds whose gain is looked at when a filter is made: one that settles has settled by then."""


@dataclass(frozen=True)
class LowPass:
    """What changes fast from round to round is mostly noise: m = sum_i b_i g(t-i) - sum_i a_i m(t-i), over its gain.

    `inputs` are b_0, b_1, ... and `outputs` a_1, a_2, ...; the gain is what the filter makes of ones until now, so that
    the first rounds are as long as the later ones.
    """

    inputs: tuple[float, ...] = (0.05, 0.05)
    outputs: tuple[float, ...] = (-0.9,)

    def __post_init__(self) -> None:
        require(len(self.inputs) > 0, "a filter needs at least one coefficient for what comes in")
        poles = np.abs(np.roots([1.0, *self.outputs]))
        require(
            bool((poles < 1).all()),
            f"a filter with outputs={self.outputs} grows without end: its poles must be below 1",
        )
        one, nothing = torch.ones((), dtype=torch.float64), torch.zeros((), dtype=torch.float64)
        ins, gains = [nothing] * len(self.inputs), [nothing] * len(self.outputs)
        for _ in range(LOOKED_AT):
            ins = [one, *ins[:-1]]
            gain = self._mixed(ins, gains)
            require(
                float(gain) > 0, f"{self} has a gain of {gain:g} in some round: steady gradients would be lost in it"
            )
            gains = [gain, *gains][: len(self.outputs)]

    def place(self, here: Tensor, remembered: Remembered) -> Tensor:  # noqa: ARG002 - nothing is foreseen
        """Where the model is."""
        return here

    def follow(
        self,
        released: Tensor,
        settings: RoundSettings,
        here: Tensor,  # noqa: ARG002 - wherever it is
        remembered: Remembered,
    ) -> tuple[Tensor, Remembered]:
        """The filter's output over its gain.

        >>> half, now = LowPass(inputs=(0.5,), outputs=(-0.5,)), RoundSettings(100, 10, 1.0, 1.0)
        >>> first, known = half.follow(torch.tensor([20.0]), now, torch.zeros(1), {})
        >>> first, half.follow(torch.tensor([50.0]), now, torch.zeros(1), known)[0]
        (tensor([2.]), tensor([4.]))
        """
        # The last coordinate is always 1: what the filter makes of it is its gain.
        new = torch.cat([(released / settings.batch_size).double(), released.new_ones(1).double()])
        blank = new.new_zeros(len(new))
        ins = [new, *remembered["ins"]] if remembered else [new, *[blank] * (len(self.inputs) - 1)]
        outs = list(remembered["outs"]) if remembered else [blank] * len(self.outputs)
        mixed = self._mixed(ins, outs)
        kept = {
            "ins": _stacked(ins[: len(self.inputs) - 1], new),
            "outs": _stacked([mixed, *outs][: len(self.outputs)], new),
        }
        return (mixed[:-1] / mixed[-1]).to(released.dtype), kept

    def _mixed(self, ins: list[Tensor], outs: list[Tensor]) -> Tensor:
        total = torch.zeros_like(ins[0])
        for weight, one in zip(self.inputs, ins, strict=True):
            total += weight * one
        for weight, one in zip(self.outputs, outs, strict=True):
            total -= weight * one
        return total


def _stacked(parts: list[Tensor], like: Tensor) -> Tensor:
    return torch.stack(parts) if parts else like.new_zeros(0, len(like))
