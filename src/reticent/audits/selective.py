"""SelectiveToy release, audited: toys of DPSUR and SA-DPSGD in which only accepted updates are seen.

One parameter, clip 1. The base records have zero gradient and like an update iff it lies in the tails, below `low` or
above `high`; the canary has gradient 1 and no say in the test. Accepted updates are seen, rejected ones are not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from reticent.attacks.intervals import Floats
from reticent.audits.counts import Evidence


@dataclass(frozen=True)
class SelectiveToy:
    """A run of `steps` accepted updates, each accepted with chance `liked` in the tails and `disliked` elsewhere.

    `forced` accepts whatever comes after so many rejections in a row (SA-DPSGD); None never does (DPSUR).
    """

    rate: float
    noise_multiplier: float
    steps: int
    low: float
    high: float
    liked: float
    disliked: float
    forced: int | None = None

    def candidates(self, shape: tuple[int, ...], present: bool, rng: np.random.Generator) -> Floats:
        """Noisy clipped sums before any test."""
        noise = self.noise_multiplier * rng.standard_normal(shape)
        return noise + (rng.random(shape) < self.rate) if present else noise

    def accept_chance(self, updates: Floats) -> Floats:
        """The chance that the test keeps each update."""
        return np.where((updates < self.low) | (updates > self.high), self.liked, self.disliked)

    def accepted(self, runs: int, present: bool, rng: np.random.Generator) -> Floats:
        """The accepted updates, runs x steps: repeat each attempt until it is kept, as the published loops do."""
        updates = np.empty(runs * self.steps)
        open_places = np.arange(updates.size)
        rejections = 0
        while open_places.size:
            tried = self.candidates((open_places.size,), present, rng)
            kept = rng.random(open_places.size) < self.accept_chance(tried)
            if self.forced is not None and rejections >= self.forced:
                kept[:] = True
            updates[open_places[kept]] = tried[kept]
            open_places = open_places[~kept]
            rejections += 1
        return updates.reshape(runs, self.steps)

    def attempts(self, runs: int, present: bool, rng: np.random.Generator) -> Floats:
        """A fixed number `steps` of attempts each run; a rejected one shows as NaN."""
        tried = self.candidates((runs, self.steps), present, rng)
        return np.where(rng.random(tried.shape) < self.accept_chance(tried), tried, np.nan)

    def log_ratio(self, updates: Floats) -> Floats:
        """How much more likely each update is with the canary, before selection; a rejection counts nothing."""
        s, q = self.noise_multiplier, self.rate
        seen = np.nan_to_num(updates, nan=0.0)
        ratio = np.logaddexp(np.log1p(-q), np.log(q) + (2 * seen - 1) / (2 * s * s))
        return np.where(np.isnan(updates), 0.0, ratio)

    def evidence(self, runs: int, *, seed: int, rejections_seen: bool = False) -> Evidence:
        """One number a run: the log likelihood ratio summed over what the adversary saw."""
        rng = np.random.default_rng(seed)
        see = self.attempts if rejections_seen else self.accepted
        absent, present = (self.log_ratio(see(runs, side, rng)).sum(axis=1) for side in (False, True))
        return Evidence(absent, present)


def dpsur_toy(
    rate: float, noise_multiplier: float, validation_noise: float, beta: float, steps: int, low: float, high: float
) -> SelectiveToy:
    """DPSUR: keep with chance Phi((beta + 1) / 2s) where the loss falls, Phi((beta - 1) / 2s) where it rises.

    >>> round(dpsur_toy(0.1, 2.0, 0.8, -1.0, 60, -3.6, 3.68).liked, 3)
    0.5
    """
    liked, disliked = (float(ndtr((beta + side) / (2 * validation_noise))) for side in (1, -1))
    return SelectiveToy(rate, noise_multiplier, steps, low, high, liked, disliked)


def annealing_toy(rate: float, noise_multiplier: float, max_rejections: int, steps: int, high: float) -> SelectiveToy:
    """SA-DPSGD: keep iff the public loss falls, or after `max_rejections` in a row."""
    return SelectiveToy(rate, noise_multiplier, steps, -np.inf, high, 1.0, 0.0, forced=max_rejections)
