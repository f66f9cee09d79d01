"""What the duration of a run tells where updates are kept or dropped (DPSUR, Fu et al. 2024, section 5.4).

The paper's charge covers no clock. It advises to wait a random while whenever an update is kept. Here is what the whole
duration still gives away in one instance, with and without such pauses: a certain lower bound, no guarantee.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import nbinom

from reticent.accounting.events import SelectiveAttempt

Array = NDArray[np.float64]
LEFT_OUT = 1e-12
"""The chance of longer runs, which are not looked at: that only lowers the bound."""


def duration_epsilon(attempt: SelectiveAttempt, kept: int, delta: float, *, pause: float = 0.0) -> float:
    """An epsilon that the number of attempts of a whole run certainly has, if candidates look good to all but one.

    The one example, when drawn for the test, makes it fail as surely as it can; nobody else ever does. `pause` is how
    many attempts long the random waits after kept updates are on average, with a geometric law.

    >>> attempt = SelectiveAttempt(2048 / 60000, 4.0, 256 / 60000, 0.22, 0.5)
    >>> round(duration_epsilon(attempt, 651, 1e-5), 2), round(duration_epsilon(attempt, 651, 1e-5, pause=10.0), 2)
    (0.3, 0.03)
    """
    without = attempt.accept_high
    there = without - attempt.validation_rate * (attempt.accept_high - attempt.accept_low)
    longest = int(max(nbinom.ppf(1 - LEFT_OUT, kept, chance) for chance in (without, there)))
    rejected = [nbinom.pmf(np.arange(longest + 1), kept, chance) for chance in (without, there)]
    absent, present = (_paused(law, kept, pause) for law in rejected)
    return max(_epsilon(present, absent, delta), _epsilon(absent, present, delta))


def _paused(law: Array, kept: int, pause: float) -> Array:
    """The law of attempts and pauses together."""
    if pause <= 0:
        return law
    stop = 1 / (1 + pause)
    longest = int(nbinom.ppf(1 - LEFT_OUT, kept, stop))
    return np.convolve(law, nbinom.pmf(np.arange(longest + 1), kept, stop))


def _epsilon(mine: Array, other: Array, delta: float) -> float:
    """The epsilon at which what is left of one law above the other falls to delta."""

    def spare(epsilon: float) -> float:
        return float(np.maximum(mine - math.exp(epsilon) * other, 0).sum()) - delta

    return float(brentq(spare, 0.0, 50.0)) if spare(0.0) > 0 else 0.0
