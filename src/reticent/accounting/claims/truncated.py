"""A normal number that is shown only if it falls into an interval (DPSUR, Fu et al. 2024, algorithm 1, theorem 4.1).

For one *fixed* number, drawing again until the noisy answer falls into the interval costs no more than showing it once.
The test of DPSUR asks a random draw, of which this is not true: see docs/accounting.md.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import log_ndtr


def truncated_divergence(order: float, noise_multiplier: float, end: float, start: float = -math.inf) -> float:
    """The Renyi divergence of two such numbers, 0 and 1 before the noise, the larger of both directions (eq. 13-15).

    Without an interval it is order / (2 sigma^2). With any interval it is at most that, not only with one that has no
    lower end, as the paper has it: how much of a normal law an interval holds is log-concave in the law's mean.

    >>> truncated_divergence(4.0, 1.0, math.inf), round(truncated_divergence(4.0, 1.0, -1.0), 4)
    (2.0, 0.6638)
    """

    def log_share(mean: float) -> float:
        return _log_between((start - mean) / noise_multiplier, (end - mean) / noise_multiplier)

    def excess(mine: int, other: int) -> float:
        """What the interval adds to the divergence, times order - 1: by concavity never above 0 (theorem 4.2)."""
        between = order * mine + (1 - order) * other
        return log_share(between) + (order - 1) * log_share(other) - order * log_share(mine)

    return order / (2 * noise_multiplier**2) + max(excess(0, 1), excess(1, 0)) / (order - 1)


def _log_between(low: float, high: float) -> float:
    """The logarithm of the chance that a standard normal number lies between two, exact in both tails."""
    if low > 0:
        low, high = -high, -low
    upper, lower = float(log_ndtr(high)), float(log_ndtr(low))
    return upper + float(np.log1p(-np.exp(lower - upper))) if lower > -math.inf else upper
