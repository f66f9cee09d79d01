"""Means and deviations of private data: noisy sums through the vault's door, each charged.

Every example counts through a vector of channel means (and one of mean squares) cut to a public length, so what one
example can change is known beforehand (Tramer and Boneh 2021, with the cuts fixed instead of taken from the data).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from reticent.inside import Batch, Drawn, Everyone, GaussianNoise, RoundSettings, Vault
from reticent.inside.persons import features_of, weighted_rows


@dataclass(frozen=True, eq=False)
class Moments:
    """Released means and standard deviations, one for each channel: public from here on."""

    mean: Tensor
    std: Tensor


@dataclass(frozen=True, eq=False)
class FeatureSum:
    """The sum over examples of what a public function makes of each, every vector cut to the length `limit`.

    Where examples are persons, a person's vector is the mean over rows, cut as one.
    """

    features: Callable[[Tensor], Tensor]
    limit: float

    @property
    def sensitivity(self) -> float:
        """No example's vector is longer than the limit."""
        return self.limit

    def answer(self, taken: Drawn) -> Tensor:
        """Add up the cut vectors; one that is not finite counts nothing."""
        return torch.stack([self._add_up(batch) for batch in taken.batches()]).sum(0)

    @torch.no_grad()
    def _add_up(self, batch: Batch) -> Tensor:
        vectors = features_of(self.features, batch)
        lengths = vectors.flatten(1).norm(dim=1).reshape(-1, *[1] * (vectors.ndim - 1))
        cut = vectors * (self.limit / lengths).clamp(max=1)
        return torch.where(torch.isfinite(lengths) & (lengths > 0), cut, 0.0).sum(0)


@dataclass(frozen=True, eq=False)
class PresenceSum:
    """The sum over examples of rows that say which of so many places are there, each row scaled to length 1.

    Where examples are persons, a person's row is the mean over rows.
    """

    places: int

    @property
    def sensitivity(self) -> float:
        """A row is no longer than 1, whatever is in it: a place that is named twice counts once."""
        return 1.0

    @torch.no_grad()
    def answer(self, taken: Drawn) -> Tensor:
        """Add up the rows; what is no place counts nothing."""
        total = torch.zeros(self.places + 1, dtype=torch.float64)
        for batch in taken.batches():
            x, weights = weighted_rows(batch)
            rows = x.reshape(len(x), -1).long().sort(1).values
            there = (rows > 0) & (rows <= self.places)
            there[:, 1:] &= rows[:, 1:] != rows[:, :-1]
            each = weights / there.sum(1).double().sqrt().clamp(min=1)
            total.index_add_(0, rows[there], each[:, None].expand(there.shape)[there])
        return total


def release_presence(vault: Vault, places: int, *, noise_multiplier: float, size: int | None = None) -> Tensor:
    """Release how much each place counts on average, in rows of length 1: one Gaussian release in the ledger."""
    size = len(vault) if size is None else size
    draw = vault.draw(Everyone(), RoundSettings(size, size, 1.0, noise_multiplier))
    return vault.release(vault.ask(PresenceSum(places), draw), GaussianNoise(noise_multiplier)) / size


def channel_means(x: Tensor, power: int) -> Tensor:
    """The mean of x ** power over each channel of each example.

    >>> channel_means(torch.tensor([[[1.0, 3.0]]]), 2)
    tensor([[5.]], dtype=torch.float64)
    """
    return x.double().pow(power).reshape(*x.shape[:2], -1).mean(2)


def release_moments(
    vault: Vault,
    *,
    mean_limit: float,
    square_limit: float,
    noise_multiplier: float,
    size: int | None = None,
    before: Callable[[Tensor], Tensor] | None = None,
) -> Moments:
    """Release the channels' means and deviations: two Gaussian releases in the vault's ledger.

    The limits are public: take them from what is known of the data or from public data of the same kind. Channels are
    the first axis of an example. A variance below the noise on it may have any sign: it counts as large as that noise,
    so that channels which hardly vary are not blown up by chance. `size` is the declared number of examples; without
    it, how many there are is public. `before` is a public function of each example, whose moments are released.
    """
    size = len(vault) if size is None else size

    def powers(x: Tensor, power: int) -> Tensor:
        return channel_means(x if before is None else before(x), power)

    mean, square = (
        release_mean(vault, partial(powers, power=power), limit=limit, noise_multiplier=noise_multiplier, size=size)
        for power, limit in ((1, mean_limit), (2, square_limit))
    )
    noise = noise_multiplier * square_limit / size
    std = (square - mean**2).clamp(min=noise).sqrt()
    return Moments(mean.float(), std.float())


def release_mean(
    vault: Vault,
    features: Callable[[Tensor], Tensor],
    *,
    limit: float,
    noise_multiplier: float,
    size: int | None = None,
) -> Tensor:
    """Release the mean of what a public function makes of the examples: one Gaussian release in the ledger.

    The function must look at each example by itself. The sum is divided by `size`, the declared number of examples;
    without it, by how many there are, which is public then.
    """
    size = len(vault) if size is None else size
    draw = vault.draw(Everyone(), RoundSettings(size, size, limit, noise_multiplier))
    total = vault.release(vault.ask(FeatureSum(features, limit), draw), GaussianNoise(noise_multiplier))
    return total / size
