"""Canaries in one training: each is in by a coin flip, and the trained model is asked which."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from reticent.attacks.intervals import Floats
from reticent.attacks.signals import confidence
from reticent.audits.claims import Claim
from reticent.audits.gaussian import gdp_epsilon
from reticent.audits.one_run import contradicts, epsilon_one_run, guess, mu_one_run, p_value
from reticent.errors import SettingError

Examples = tuple[Tensor, Tensor]
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


def mislabelled(x: Tensor, y: Tensor, classes: int, *, seed: int) -> Examples:
    """The same inputs with labels that are certainly wrong: what a model says of them is learned by heart.

    >>> x, y = mislabelled(torch.zeros(50, 2), torch.zeros(50, dtype=torch.long), 3, seed=0)
    >>> bool((y != 0).all())
    True
    """
    if classes < 2:
        raise SettingError("a wrong label needs a second class")
    coins = torch.Generator().manual_seed(seed)
    return x.clone(), (y + torch.randint(1, classes, y.shape, generator=coins)) % classes


def audit_one_run(
    train: Callable[[Examples], nn.Module],
    base: Examples,
    canaries: Examples,
    *,
    epsilon: float,
    delta: float,
    claim: Claim | None = None,
    alpha: float = 0.05,
    seed: int = 0,
) -> OneRun:
    """Train once on the base and a random half of the canaries, and test the (epsilon, delta) that is claimed for it.

    Promise: a true claim is contradicted with chance at most `alpha`. A `claim` with its whole curve is tested as well.
    """
    count = len(canaries[1])
    included = np.random.default_rng(seed).random(count) < 0.5
    chosen = torch.from_numpy(included)
    model = train((torch.cat([base[0], canaries[0][chosen]]), torch.cat([base[1], canaries[1][chosen]])))
    return judge_one_run(score(model, canaries), included, epsilon=epsilon, delta=delta, claim=claim, alpha=alpha)


def score(model: nn.Module, examples: Examples) -> Floats:
    """How sure the model is of each example's label."""
    model.eval()
    with torch.no_grad():
        return confidence(model(examples[0]).cpu().numpy(), examples[1].numpy())


def judge_one_run(
    scores: Floats,
    included: np.ndarray[tuple[int], np.dtype[np.bool_]],
    *,
    epsilon: float,
    delta: float,
    claim: Claim | None = None,
    alpha: float = 0.05,
    shares: Sequence[float] = SHARES,
) -> OneRun:
    """What the scores of canaries prove, guessing a few shares of them."""
    level = alpha / len(shares) / (1 if claim is None else 2)
    lower = under_gdp = 0.0
    contradicted = False
    for share in shares:
        guesses = guess(scores, included, *(max(1, int(len(scores) * share / 2)),) * 2)
        lower = max(lower, epsilon_one_run(guesses, delta, level))
        under_gdp = max(under_gdp, gdp_epsilon(mu_one_run(guesses, level), delta))
        contradicted |= p_value(guesses, epsilon, delta) < level
        contradicted |= claim is not None and contradicts(guesses, claim.least_fpr, level)
    return OneRun(len(scores), int(included.sum()), lower, under_gdp, bool(contradicted), 1 - alpha)
