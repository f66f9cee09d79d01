"""The sniper: close to the truth where it is known, never above it, and alarmed by too little noise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from reticent.audits.sniper import Outputs, sniper_epsilon
from reticent.inside.mechanisms import AcceptanceCoin


def laplace(centre: float, scale: float) -> Outputs:
    return lambda runs, rng: rng.laplace(centre, scale, runs)


def noisy_max(scores: list[float], epsilon: float) -> Outputs:
    def draw(runs: int, rng: np.random.Generator) -> np.ndarray:
        return np.argmax(np.array(scores) + rng.laplace(0, 1 / epsilon, (runs, len(scores))), axis=1).astype(float)

    return draw


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_laplace_noise_has_its_epsilon(epsilon: float) -> None:
    found = sniper_epsilon(laplace(1, 1 / epsilon), laplace(0, 1 / epsilon), mass=0.05, seed=1)
    assert 0.85 * epsilon < found <= epsilon


def test_too_little_noise_is_seen() -> None:
    assert sniper_epsilon(laplace(1, 0.5), laplace(0, 0.5), mass=0.05) > 1.5


def test_a_noisy_maximum_keeps_to_its_epsilon() -> None:
    """One example more lowers every score by at most one: monotone, so Laplace noise of scale 1 / epsilon is enough."""
    one, other = noisy_max([1.0, 0.0, 0.0], 1.0), noisy_max([0.0, 0.0, 0.0], 1.0)
    assert 0.2 < sniper_epsilon(one, other, mass=0.3) <= 1.0
    assert 0.0 < sniper_epsilon(other, one, mass=0.3) <= 1.0


def test_one_gain_moves_the_acceptance_coin_by_its_influence_at_most() -> None:
    coin = AcceptanceCoin(0.4, 0.75, 0.5)

    def toss(gains: float) -> Outputs:
        return lambda runs, rng: (rng.random(runs) < coin.chance(gains)).astype(float)

    assert sniper_epsilon(toss(0.5), toss(-0.5), mass=0.3) <= 0.5


def test_delta_pays_for_rare_outputs() -> None:
    """An output that only one neighbour has, with chance 0.001, costs epsilon infinity or delta 0.001."""

    def rare(shown: bool) -> Outputs:
        return lambda runs, rng: np.where((rng.random(runs) < 0.001) & shown, 9.0, 0.0)

    assert sniper_epsilon(rare(True), rare(False), mass=1e-6) > math.log(3)
    assert sniper_epsilon(rare(True), rare(False), mass=1e-6, delta=0.0015) == 0.0
