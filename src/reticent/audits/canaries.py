"""Canaries in one training, each in by a coin flip: what the trained model's words about them prove."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reticent.attacks.intervals import Floats
from reticent.attacks.signals import Bools
from reticent.audits.claims import Claim
from reticent.audits.gaussian import gdp_epsilon
from reticent.audits.one_run import contradicts, epsilon_one_run, guess, mu_one_run, p_value

SHARES = (0.1, 0.3, 0.8)
"""The shares of canaries that are guessed, fixed in advance; the level is divided among them."""


@dataclass(frozen=True)
class OneRun:
    """What one training with canaries proves."""

    canaries: int
    included: int
    lower: float
    """By Steinke et al. 2023: valid for every mechanism."""
    under_gdp: float
    """By Mahloujifar et al. 2024 for a Gaussian trade-off: an estimate for any other."""
    contradicted: bool
    confidence: float


def judge_one_run(
    scores: Floats,
    included: Bools,
    *,
    epsilon: float,
    delta: float,
    claim: Claim | None = None,
    alpha: float = 0.05,
    shares: Sequence[float] = SHARES,
) -> OneRun:
    """Test the (epsilon, delta) that is claimed for a training by the scores its model gives the canaries.

    Promise: a true claim is contradicted with chance at most `alpha`, if every canary was in by a fair coin of its own.
    A `claim` with its whole curve is tested as well.
    """
    level = alpha / len(shares) / (1 if claim is None else 2)
    lower = under_gdp = 0.0
    contradicted = False
    for share in shares:
        side = max(1, int(len(scores) * share / 2))
        guesses = guess(scores, included, side, side)
        lower = max(lower, epsilon_one_run(guesses, delta, level))
        under_gdp = max(under_gdp, gdp_epsilon(mu_one_run(guesses, level), delta))
        contradicted |= p_value(guesses, epsilon, delta) < level
        contradicted |= claim is not None and contradicts(guesses, claim.least_fpr, level)
    return OneRun(len(scores), int(included.sum()), lower, under_gdp, bool(contradicted), 1 - alpha)
