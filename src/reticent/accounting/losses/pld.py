"""Privacy loss distributions of events: the tightest price, valid where every parameter was fixed in advance.

Each event is a pair of laws that dominates it, and the pairs of a tally compose to one that dominates all of it, also
where a mechanism's other inputs follow from earlier outputs (Zhu, Dong & Wang 2022, theorem 10); its loss is the sum.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from reticent.accounting.events import (
    Composed,
    Event,
    FixedSize,
    Gaussian,
    Laplace,
    NoisyMax,
    OnceIn,
    SelectiveAttempt,
    Subsampled,
    Truncated,
)
from reticent.accounting.losses.allocated import MOST_POINTS, allocated_loss, points
from reticent.accounting.losses.distribution import Loss, compose, from_atoms, from_library
from reticent.accounting.losses.gaussian import gaussian_loss, loss_range
from reticent.accounting.losses.swapped import mixed_loss, swapped_loss
from reticent.accounting.renyi.curves import curve
from reticent.accounting.renyi.swapped import cut_short
from reticent.accounting.selective.loss import attempt_loss

Pair = tuple[Loss, Loss]
"""The losses of both directions: one record removed, one record added."""


@dataclass(frozen=True)
class Grid:
    """How finely losses are told apart: steps in one standard deviation of an average event's loss, and most points."""

    resolution: float
    most_points: int


FINE, MANY, COARSE = Grid(32, 2**17), Grid(12, 2**17), Grid(6, 2**15)
"""For a few distinct events, for many, and for searches. All of them err upwards, and four times less if twice as fine.
Over a grid of resolution 256 epsilon was higher by 1e-4 of itself or less (fine), 6e-4 (many) and 2e-3 (coarse) for up
to 1e5 steps; for a million, where the most points decide, by 1e-3, 1e-3 and 2e-2."""

FEW = 8
"""More distinct events than these share a coarser grid: each needs a law and a transform of its own."""

SPAN = 16.0
"""Deviations of the composed loss that the most points must cover, 8 to each side of its mean."""

LEAST_EVENTS = 32**2
"""A grid is as fine as if there were so many events at least: the loss of one alone is not Gaussian, and its details
are smaller than its deviation."""

CUTS = 4
"""Steps are rounded down to a power of 2^(1/4), so that the losses of an event are found again in the cache."""

PROBE = 1.5
"""The order from whose divergence the variance of a loss is read off: of a Gaussian loss it is order * variance / 2."""


def has_pld(event: Event) -> bool:
    """Whether the loss distribution of an event is known.

    >>> has_pld(Subsampled(0.1, Gaussian(1.0)))
    True
    """
    match event:
        case Gaussian(noise_multiplier) | Laplace(noise_multiplier):
            return noise_multiplier > 0
        case Subsampled(_, Gaussian(noise_multiplier)) | Subsampled(_, Laplace(noise_multiplier)):
            return noise_multiplier > 0
        case SelectiveAttempt(rate, noise_multiplier, validation_rate, accept_low):
            return rate > 0 and noise_multiplier > 0 and (accept_low > 0 or validation_rate == 0)
        case FixedSize(_, _, Gaussian(noise_multiplier)) | Truncated(_, _, _, Gaussian(noise_multiplier)):
            return noise_multiplier > 0
        case OnceIn(rounds, Gaussian(noise_multiplier)):
            return noise_multiplier > 0 and points(rounds, noise_multiplier) <= MOST_POINTS
        case NoisyMax():
            return True
        case Composed(parts):
            return all(has_pld(part) for part in parts)
        case _:
            return False


def distribution(tally: Mapping[Event, int], grid: Grid | None = None) -> Pair:
    """The loss distributions of a whole tally, pessimistic, on a grid chosen from its Renyi curve."""
    merged = merge_gaussians(tally)
    step = _grid_step(merged, grid or (FINE if len(merged) <= FEW else MANY))
    pairs = [event_loss(event, step) for event in merged]
    counts = list(merged.values())
    return compose([pair[0] for pair in pairs], counts), compose([pair[1] for pair in pairs], counts)


def merge_gaussians(tally: Mapping[Event, int]) -> dict[Event, int]:
    """The same tally with all plain Gaussians as one: they compose exactly.

    >>> merge_gaussians({Gaussian(2.0): 4})
    {Gaussian(noise_multiplier=1.0): 1}
    """
    precision = 0.0
    merged: dict[Event, int] = {}
    for event, count in tally.items():
        match event:
            case Gaussian(noise_multiplier):
                precision += count / noise_multiplier**2
            case _:
                merged[event] = merged.get(event, 0) + count
    if precision:
        merged[Gaussian(precision**-0.5)] = 1
    return merged


def _grid_step(tally: Mapping[Event, int], grid: Grid) -> float:
    """Fine against the spread of an average event, coarse enough for the most points; rounded, to be met again."""
    order = np.array([PROBE])
    variance = sum(count * 2 / PROBE * float(curve(event, order)[0]) for event, count in tally.items())
    widest = max([SPAN * math.sqrt(variance), *(_width(event) for event in tally)])
    step = math.sqrt(variance) / grid.resolution / math.sqrt(max(sum(tally.values()), LEAST_EVENTS))
    return math.exp2(math.floor(CUTS * math.log2(max(step, widest / grid.most_points))) / CUTS)


def _width(event: Event) -> float:
    """How far apart the losses of one event can lie."""
    match event:
        case Subsampled(rate, Gaussian(noise_multiplier)) | SelectiveAttempt(rate, noise_multiplier):
            low, high = loss_range(rate, noise_multiplier)
            return high - low
        case FixedSize(batch, size, Gaussian(noise_multiplier)):
            return 2 * loss_range(batch / size, noise_multiplier / 2)[1]
        case Truncated(rate, _, _, Gaussian(noise_multiplier)):
            return 2 * loss_range(rate, noise_multiplier / 2)[1]
        case OnceIn(rounds, Gaussian(noise_multiplier)):
            return 2 * math.log(points(rounds, noise_multiplier))
        case _:
            return 0.0


@lru_cache(maxsize=256)
def event_loss(event: Event, step: float) -> Pair:
    """The loss distributions of one event on a grid."""
    match event:
        case Gaussian(noise_multiplier):
            return gaussian_loss(1.0, noise_multiplier, step)
        case Subsampled(rate, Gaussian(noise_multiplier)):
            return gaussian_loss(rate, noise_multiplier, step)
        case FixedSize(batch, size, Gaussian(noise_multiplier)):
            both = swapped_loss(batch / size, noise_multiplier, step)
            return both, both
        case Truncated(rate, most, size, Gaussian(noise_multiplier)):
            full, share = cut_short(rate, most, size)
            removed, added = gaussian_loss(rate, noise_multiplier, step)
            other = swapped_loss(share, noise_multiplier, step) if share else removed
            return mixed_loss(full, removed, other), mixed_loss(full, added, other)
        case OnceIn(rounds, Gaussian(noise_multiplier)):
            return allocated_loss(rounds, noise_multiplier, step)
        case SelectiveAttempt():
            return attempt_loss(event, step)
        case NoisyMax(epsilon):
            response = 1 / (1 + math.exp(-epsilon))  # of all epsilon-DP choices, randomised response is the worst
            loss = from_atoms([epsilon, -epsilon], [response, 1 - response], step)
            return loss, loss
        case Composed(parts):
            pairs = [event_loss(part, step) for part in parts]
            ones = [1] * len(parts)
            return compose([pair[0] for pair in pairs], ones), compose([pair[1] for pair in pairs], ones)
        case _:
            return _library_loss(event, step)


def _library_loss(event: Event, step: float) -> Pair:
    """The loss distributions of Laplace noise, from dp-accounting."""
    from dp_accounting.pld import privacy_loss_distribution  # slow to import, seldom needed

    match event:
        case Laplace(scale):
            rate = 1.0
        case Subsampled(rate, Laplace(scale)):
            pass
        case _:
            raise ValueError(f"no loss distribution is known for {event}")
    library = privacy_loss_distribution.from_laplace_mechanism
    pld = library(scale, value_discretization_interval=step, sampling_prob=rate)
    return from_library(pld._pmf_remove), from_library(pld._pmf_add)
