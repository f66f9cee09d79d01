"""Directions: what a released answer becomes before the optimizer sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from torch import Tensor

from reticent.accounting.claims import claimed
from reticent.accounting.claims.claimed import PaperClaim
from reticent.inside import RoundSettings
from reticent.outside.gates import Releases


class Direction(Protocol):
    """A change of a released vector; free, because what was released is already paid for."""

    def apply(self, released: Tensor, settings: RoundSettings) -> Tensor:
        """The direction the optimizer is given."""
        ...


Remembered = dict[str, Tensor]
"""What a direction remembers of released numbers: part of a checkpoint, and back where it was if a round is dropped."""


@runtime_checkable
class Remembering(Protocol):
    """A direction that remembers; free too. Nothing that it was given may be changed in place."""

    def place(self, here: Tensor, remembered: Remembered) -> Tensor:
        """Where the next gradient is asked for: as public as where the model is."""
        ...

    def follow(
        self, released: Tensor, settings: RoundSettings, here: Tensor, remembered: Remembered
    ) -> tuple[Tensor, Remembered]:
        """The direction the optimizer is given, and what to remember if the round is kept."""
        ...


@dataclass(frozen=True)
class Averaged:
    """The released sum over the declared batch size, never over the number of examples that happened to be drawn."""

    def apply(self, released: Tensor, settings: RoundSettings) -> Tensor:
        """Sum / expected batch size.

        >>> import torch
        >>> Averaged().apply(torch.tensor([5.0]), RoundSettings(100, 10, 1.0, 1.0))
        tensor([0.5000])
        """
        return released / settings.batch_size

    def in_place(self, released: Tensor, settings: RoundSettings) -> Tensor:
        """The same, written over what was released: of a long vector fresh pages take longer than the numbers."""
        return released.div_(settings.batch_size)


@dataclass(frozen=True)
class Sign:
    """Only the sign of each coordinate (Ghosh & Das 2024, algorithm 3); post-processing: it costs no privacy."""

    def apply(self, released: Tensor, settings: RoundSettings) -> Tensor:  # noqa: ARG002 - a sign has no scale
        """+1, -1, or 0 for an exact 0.

        >>> import torch
        >>> Sign().apply(torch.tensor([-0.2, 3.0]), RoundSettings(10, 1, 1.0, 1.0))
        tensor([-1.,  1.])
        """
        return released.sign()

    def claim(self, releases: Releases) -> PaperClaim:
        """Theorem 5 of the paper: plain steps, which stands."""
        return claimed.dpsign(
            releases.gradient,
            releases.kept_at_best(),
            releases.delta,
            orders=releases.orders,
            statistics=releases.already,
        )
