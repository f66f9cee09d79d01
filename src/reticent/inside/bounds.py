"""Bounds: how much one example may weigh in a sum of gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from reticent.errors import require
from reticent.gradients.forms.dense import shortest
from reticent.inside.settings import RoundSettings


class Bound(Protocol):
    """Promise: norms * weights(norms, settings) <= sensitivity(settings), and weight 0 where a norm is not finite."""

    def weights(self, norms: Tensor, settings: RoundSettings) -> Tensor:
        """The factor of each example's gradient."""
        ...

    def sensitivity(self, settings: RoundSettings) -> float:
        """The most one example can move the sum."""
        ...


@dataclass(frozen=True)
class Clip:
    """Scale a gradient down to norm `max_grad_norm` if it is longer (Abadi et al. 2016, algorithm 1)."""

    def weights(self, norms: Tensor, settings: RoundSettings) -> Tensor:
        """min(1, C / norm).

        >>> Clip().weights(torch.tensor([0.5, 2.0, float("nan")]), RoundSettings(10, 5, 1.0, 1.0))
        tensor([1.0000, 0.5000, 0.0000])
        """
        return finite(torch.clamp(settings.max_grad_norm / norms, max=1.0), norms)

    def sensitivity(self, settings: RoundSettings) -> float:
        """The clip norm."""
        return settings.max_grad_norm


@dataclass(frozen=True)
class Normalise:
    """Scale every gradient to a norm just under 1, whatever its length: AUTO-S (Bu et al. 2023)."""

    stability: float = 0.01

    def __post_init__(self) -> None:
        require(0 < self.stability < math.inf, f"stability must be above 0 and finite, not {self.stability}")

    def weights(self, norms: Tensor, settings: RoundSettings) -> Tensor:  # noqa: ARG002 - there is no clip norm to choose
        """1 / (norm + gamma).

        >>> norms = torch.tensor([0.005, 1.0])
        >>> norms * Normalise().weights(norms, RoundSettings(10, 5, 1.0, 1.0))
        tensor([0.3333, 0.9901])
        """
        return finite(1 / (norms + self.stability), norms)

    def sensitivity(self, settings: RoundSettings) -> float:  # noqa: ARG002
        """1: no gradient is longer after scaling."""
        return 1.0


def enforced(bound: Bound, norms: Tensor, settings: RoundSettings) -> Tensor:
    """The weights a bound gives, cut to what it promises: whoever wrote it, no example weighs more than is charged.

    >>> class Careless(Clip):
    ...     def weights(self, norms, settings):
    ...         return torch.ones_like(norms)
    >>> enforced(Careless(), torch.tensor([0.5, 4.0]), RoundSettings(10, 5, 1.0, 1.0))
    tensor([1.0000, 0.2500])
    """
    surely = torch.clamp(norms, min=shortest(norms.dtype))
    return finite(torch.minimum(bound.weights(norms, settings), bound.sensitivity(settings) / surely), norms)


def finite(weights: Tensor, norms: Tensor) -> Tensor:
    """The weights, with 0 for examples whose gradient is not finite: they take part and count for nothing.

    So do gradients so long that their weight would be subnormal: it would be rounded, and the bound missed.
    """
    usable = torch.isfinite(norms) & (weights >= torch.finfo(weights.dtype).tiny)
    return torch.where(usable, weights, torch.zeros_like(weights))
