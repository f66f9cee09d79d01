"""One-run audits: reference values (five of them equal to jax_privacy's), and true claims that are not contradicted."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logit

from reticent.audits.claims import Claim, gaussian_claim
from reticent.audits.gaussian import gdp_epsilon
from reticent.audits.one_run import Guesses, contradicts, epsilon_one_run, guess, mu_one_run, p_value
from reticent.errors import SettingError

REFERENCE = [
    ((100, 100, 100), 0.0, 3.4930, 1.7032, 8.2162),
    ((1000, 100, 100), 0.0, 3.4930, 1.2255, 5.549),
    ((1000, 100, 100), 1e-5, 3.4654, 1.2255, 5.549),
    ((1000, 100, 95), 0.0, 2.1724, 0.7868, 3.3233),
    ((1000, 1000, 600), 0.0, 0.2975, 0.1638, 0.5835),
    ((1000, 1000, 600), 1e-5, 0.2972, 0.1638, 0.5835),
    ((1000, 200, 180), 1e-5, 1.7963, 0.6982, 2.9012),
    ((10_000, 1000, 900), 1e-5, 2.0152, 0.6772, 2.8026),
    ((10_000, 10_000, 6000), 1e-5, 0.3715, 0.1729, 0.619),
    ((5000, 1000, 1000), 1e-5, 5.6729, 1.9605, 9.7549),
]


@pytest.mark.parametrize(("counts", "delta", "epsilon", "mu", "under_gdp"), REFERENCE)
def test_reference_values(
    counts: tuple[int, int, int], delta: float, epsilon: float, mu: float, under_gdp: float
) -> None:
    guesses = Guesses(*counts)
    assert epsilon_one_run(guesses, delta) == pytest.approx(epsilon, abs=6e-5)
    assert mu_one_run(guesses) == pytest.approx(mu, abs=6e-5)
    assert gdp_epsilon(mu_one_run(guesses), 1e-5) == pytest.approx(under_gdp, abs=6e-5)


def test_all_right_has_a_closed_form() -> None:
    assert epsilon_one_run(Guesses(100, 100, 100), 0.0) == pytest.approx(logit(0.05 ** (1 / 100)), abs=1e-6)


def test_the_p_value_rises_with_epsilon_and_delta() -> None:
    guesses = Guesses(1000, 200, 150)
    values = [p_value(guesses, epsilon, 1e-5) for epsilon in np.linspace(0, 3, 20)]
    assert (np.diff(values) >= -1e-12).all()
    assert p_value(guesses, 1.0, 1e-3) > p_value(guesses, 1.0, 0.0)


def gaussian_guesses(mu: float, canaries: int, guessed: int, rng: np.random.Generator) -> Guesses:
    """Orthogonal canaries in one Gaussian release: each score is its own shifted normal."""
    included = rng.random(canaries) < 0.5
    return guess(included * mu + rng.normal(size=canaries), included, guessed // 2, guessed // 2)


def test_a_true_claim_is_rarely_contradicted(rng: np.random.Generator) -> None:
    found = [gaussian_guesses(1.0, 1000, 200, rng) for _ in range(200)]
    assert np.mean([mu_one_run(guesses) > 1.0 for guesses in found]) <= 0.05
    assert np.mean([epsilon_one_run(guesses, 1e-5) > gdp_epsilon(1.0, 1e-5) for guesses in found]) <= 0.05


@pytest.mark.parametrize(("mu", "canaries", "steinke", "fdp"), [(1, 1000, 1.57, 2.26), (2, 1000, 3.12, 4.93)])
def test_the_bounds_of_a_gaussian_are_as_loose_as_they_are_known_to_be(
    mu: float, canaries: int, steinke: float, fdp: float, rng: np.random.Generator
) -> None:
    found = [gaussian_guesses(mu, canaries, 100, rng) for _ in range(40)]
    assert np.median([epsilon_one_run(guesses, 1e-5, 0.05 / 3) for guesses in found]) == pytest.approx(
        steinke, rel=0.25
    )
    under_gdp = [gdp_epsilon(mu_one_run(guesses, 0.05 / 3), 1e-5) for guesses in found]
    assert np.median(under_gdp) == pytest.approx(fdp, rel=0.25)


def test_any_claimed_curve_can_be_tested() -> None:
    """The curve of a claim, read off its deltas, contradicts exactly where the Gaussian formula does."""
    guesses = Guesses(1000, 200, 180)
    edge = mu_one_run(guesses)
    assert contradicts(guesses, gaussian_claim(edge - 0.02).least_fpr)
    assert not contradicts(guesses, gaussian_claim(edge + 0.02).least_fpr)
    nothing = Claim.of(lambda epsilons: np.ones_like(epsilons))
    assert not contradicts(guesses, nothing.least_fpr)


def test_guesses_must_add_up() -> None:
    with pytest.raises(SettingError):
        Guesses(10, 11, 5)
