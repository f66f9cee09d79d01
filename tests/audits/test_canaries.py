"""One-run audits of a training: a model that learns its canaries by heart is caught, one that ignores them is not."""

from __future__ import annotations

import numpy as np

from reticent.audits.canaries import judge_one_run
from reticent.audits.claims import gaussian_claim


def test_a_parrot_contradicts_any_small_epsilon(rng: np.random.Generator) -> None:
    included = rng.random(500) < 0.5
    found = judge_one_run(5.0 * included, included, epsilon=3.0, delta=1e-5)
    assert found.contradicted
    assert found.lower > 3.0
    assert found.included == included.sum()


def test_a_model_that_ignores_its_canaries_contradicts_nothing(rng: np.random.Generator) -> None:
    included = rng.random(500) < 0.5
    assert not judge_one_run(rng.normal(size=500), included, epsilon=0.1, delta=1e-5).contradicted


def test_a_true_gaussian_claim_survives_and_a_false_one_does_not(rng: np.random.Generator) -> None:
    included = rng.random(2000) < 0.5
    scores = 2.0 * included + rng.normal(size=2000)
    true = judge_one_run(scores, included, epsilon=10.0, delta=1e-5, claim=gaussian_claim(2.0))
    false = judge_one_run(scores, included, epsilon=10.0, delta=1e-5, claim=gaussian_claim(0.8))
    assert not true.contradicted
    assert false.contradicted


def test_a_contradicted_epsilon_is_below_the_bound_and_the_other_way_round(rng: np.random.Generator) -> None:
    included = rng.random(400) < 0.5
    scores = 3.0 * included + rng.normal(size=400)
    lower = judge_one_run(scores, included, epsilon=0.0, delta=1e-5).lower
    assert judge_one_run(scores, included, epsilon=lower - 0.01, delta=1e-5).contradicted
    assert not judge_one_run(scores, included, epsilon=lower + 0.01, delta=1e-5).contradicted
