"""Sniper: for small mechanisms of any kind, learn the outputs that tell neighbours apart best (Bichsel et al. 2021)."""

# mypy: untyped-calls-exclude=sklearn

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from reticent.attacks.intervals import Floats, rate_at_least, rate_at_most

Outputs = Callable[[int, np.random.Generator], Floats]
"""Draws so many outputs of a mechanism on one of two neighbours: a number, or a row of numbers, each."""


def sniper_epsilon(
    one: Outputs,
    other: Outputs,
    *,
    delta: float = 0.0,
    mass: float = 0.01,
    runs: int = 100_000,
    alpha: float = 0.05,
    seed: int = 0,
) -> float:
    """A lower bound on epsilon from a set that `other` hits with chance about `mass` and `one` as often as possible.

    Promise: set and threshold are found on other runs than those that certify, so it is too high with chance `alpha`.

    >>> coin = lambda chance: lambda runs, rng: (rng.random(runs) < chance).astype(float)
    >>> 1.0 < sniper_epsilon(coin(0.75), coin(0.25), mass=0.2, runs=20_000) < math.log(3)
    True
    """
    rng = np.random.default_rng(seed)
    scorer = _learn(_rows(one(runs, rng)), _rows(other(runs, rng)))
    threshold, share = _threshold(scorer(_rows(other(runs, rng))), mass)

    def hits(outputs: Floats) -> int:
        scores = scorer(_rows(outputs))
        return int((scores > threshold).sum() + (rng.random(len(scores)) < share)[scores == threshold].sum())

    often = rate_at_least(hits(one(runs, rng)), runs, alpha / 2)
    seldom = rate_at_most(hits(other(runs, rng)), runs, alpha / 2)
    return max(0.0, math.log((often - delta) / seldom)) if often > delta else 0.0


def _rows(outputs: Floats) -> Floats:
    """Outputs as features, with their sizes: what is rare may lie on both sides."""
    table = np.asarray(outputs, dtype=np.float64).reshape(len(outputs), -1)
    return np.concatenate([table, np.abs(table)], axis=1)


def _learn(one: Floats, other: Floats) -> Callable[[Floats], Floats]:
    from sklearn.linear_model import LogisticRegression

    learner = LogisticRegression(max_iter=1000)
    learner.fit(np.concatenate([one, other]), np.arange(len(one) + len(other)) < len(one))
    return lambda rows: np.asarray(learner.decision_function(rows), dtype=np.float64)


def _threshold(scores: Floats, mass: float) -> tuple[float, float]:
    """The score above which less than `mass` lies, and the share of ties with it that makes up for the rest."""
    threshold = float(np.quantile(scores, 1 - mass))
    above, tied = (scores > threshold).mean(), (scores == threshold).mean()
    return threshold, float((mass - above) / tied) if tied else 0.0
