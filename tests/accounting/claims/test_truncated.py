"""Theorems 4.1 and 4.2 of DPSUR: a normal number that is drawn again until it falls into an interval."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import simpson
from scipy.special import log_ndtr, ndtr

from reticent.accounting.claims.truncated import truncated_divergence


def by_quadrature(order: float, noise: float, start: float, end: float) -> float:
    z = np.linspace(max(start, -12 * noise - order), min(end, 12 * noise + order), 40_001)
    logs = []
    for mean in (0.0, 1.0):
        share = float(ndtr((end - mean) / noise) - ndtr((start - mean) / noise))
        logs.append(-(((z - mean) / noise) ** 2) / 2 - math.log(noise * math.sqrt(2 * math.pi) * share))
    both = ((logs[0], logs[1]), (logs[1], logs[0]))
    return max(math.log(simpson(np.exp(order * p + (1 - order) * q), x=z)) / (order - 1) for p, q in both)


@pytest.mark.parametrize("order", [1.5, 4.0, 16.0])
@pytest.mark.parametrize(("start", "end"), [(-math.inf, -0.5), (-math.inf, 0.7), (-0.4, 1.8), (0.2, math.inf)])
def test_it_is_the_divergence_of_the_truncated_laws(order: float, start: float, end: float) -> None:
    assert truncated_divergence(order, 1.3, end, start) == pytest.approx(
        by_quadrature(order, 1.3, start, end), rel=1e-6
    )


def test_theorem_4_1_holds_for_every_interval_and_is_sharp_without_one() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        order, noise = 1 + rng.exponential(10), rng.uniform(0.3, 3)
        start, end = np.sort(rng.normal(0, 4, 2))
        whole = order / (2 * noise**2)
        for low in (-math.inf, float(start)):
            assert -1e-9 <= truncated_divergence(order, noise, float(end), low) <= whole * (1 + 1e-9)
        assert truncated_divergence(order, noise, math.inf) == pytest.approx(whole)


def test_theorem_4_2_a_and_b_are_at_most_one() -> None:
    """The paper's own A and B, in its letters."""
    rng = np.random.default_rng(1)
    for _ in range(300):
        alpha, b, mu, sigma = 1 + rng.exponential(10), rng.normal(0, 4), rng.uniform(0.1, 3), rng.uniform(0.3, 3)
        phi = [float(log_ndtr((b + shift * mu) / (mu * sigma))) for shift in (-1, 0, alpha - 1, -alpha)]
        log_a = (alpha - 1) * phi[0] + phi[2] - alpha * phi[1]
        log_b = (alpha - 1) * phi[1] + phi[3] - alpha * phi[0]
        assert max(log_a, log_b) <= 1e-9
        larger = alpha / (2 * sigma**2) + max(log_a, log_b) / (alpha - 1)
        assert truncated_divergence(alpha, sigma, b / mu) == pytest.approx(larger, abs=1e-9)
