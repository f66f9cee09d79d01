"""How long a run is that ends at a claimed epsilon: by the paper's own rule, released statistics included."""

from __future__ import annotations

import pytest

from reticent import data, methods
from reticent.accounting import Gaussian
from reticent.errors import SettingError
from reticent.experiments.recipe import Recipe, check
from reticent.experiments.request import method_of
from reticent.experiments.settling import settled
from reticent.inside import RoundSettings
from reticent.methods.claiming import claim_of, rounds_as_claimed
from reticent.methods.solving import rounds_in

STATISTICS = (Gaussian(8.0), Gaussian(8.0))
# From spec and authors' code: batch, size, noise, test noise, claimed epsilon, statistics, kept updates.
TABLE_2 = [
    (1024, 60000, 2.0, 1.3, 1, True, 280),
    (1024, 60000, 1.5, 1.0, 2, True, 861),
    (1024, 60000, 1.35, 0.9, 3, True, 1474),
    (1024, 60000, 1.35, 0.8, 4, True, 2285),
    (2048, 60000, 4.0, 1.3, 1, False, 651),
    (2048, 60000, 2.15, 0.8, 3, False, 1081),
    (8192, 50000, 11.0, 1.3, 1, True, 118),
    (8192, 50000, 5.67, 1.1, 4, True, 796),
    (1024, 25000, 2.0, 1.3, 1, False, 84),
    (1024, 25000, 1.23, 0.9, 4, False, 331),
]


@pytest.mark.parametrize(("batch", "size", "noise", "test_noise", "epsilon", "released", "kept"), TABLE_2)
def test_dpsur_keeps_as_many_updates_as_the_authors_did(
    batch: int, size: int, noise: float, test_noise: float, epsilon: float, released: bool, kept: int
) -> None:
    method = methods.get("dpsur", noise_multiplier=noise, validation_noise=test_noise, hidden_attempts=True)
    settings, already = RoundSettings(size, batch, 0.1, noise), STATISTICS if released else ()
    found = rounds_as_claimed(method, settings, epsilon, 1e-5, already)
    assert found == pytest.approx(kept, rel=0.02), "the code's orders are finer than the paper's"
    claims = [claim_of(method, settings, n, 1e-5, kept=n, already=already) for n in (found, found + 1)]
    assert claims[0] is not None
    assert claims[1] is not None
    assert claims[0].epsilon <= epsilon < claims[1].epsilon


@pytest.mark.parametrize("name", ["dpsur", "sa_dpsgd", "dpsign_sgd"])
def test_released_statistics_are_part_of_every_claim(name: str) -> None:
    method, settings = methods.get(name, noise_multiplier=2.0), RoundSettings(1000, 100, 0.1, 2.0)
    bare, with_them = (claim_of(method, settings, 50, 1e-5, kept=50, already=events) for events in ((), STATISTICS))
    assert bare is not None
    assert with_them is not None
    assert with_them.epsilon > bare.epsilon


def test_attempts_that_are_charged_have_no_such_length_nor_has_a_method_without_a_claim() -> None:
    settings = RoundSettings(1000, 100, 0.1, 2.0)
    with pytest.raises(SettingError, match="hidden_attempts"):
        rounds_as_claimed(methods.get("dpsur", noise_multiplier=2.0), settings, 1.0, 1e-5)
    with pytest.raises(SettingError, match="no rule of its own"):
        rounds_as_claimed(methods.get("dpsgd", noise_multiplier=2.0), settings, 1.0, 1e-5)
    with pytest.raises(SettingError, match="not even one round"):
        rounds_as_claimed(methods.get("dpsign_sgd", noise_multiplier=0.1), settings, 0.001, 1e-5)


def test_a_recipe_is_as_long_as_it_is_claimed_to_be() -> None:
    said = Recipe(
        data="digits",
        method="dpsur",
        claimed_epsilon=2.0,
        noise_multiplier=2.0,
        batch_size=100.0,
        delta=1e-5,
        epochs=999.0,
        options={"hidden_attempts": True},
    ).filled()
    check(said)
    digits = data.load("digits")
    found = settled(said, digits)
    rounds = rounds_as_claimed(method_of(said), RoundSettings(len(digits.train), 100, 0.1, 2.0), 2.0, 1e-5)
    assert rounds_in(found.epochs or 0, len(digits.train), 100) == rounds
    assert settled(found, digits) == found, "however often it is settled"


@pytest.mark.parametrize("wrong", [{"epsilon": 1.0, "noise_multiplier": 2.0}, {}])
def test_a_claimed_epsilon_is_no_budget(wrong: dict[str, float]) -> None:
    with pytest.raises(SettingError, match="claimed_epsilon"):
        check(Recipe(method="dpsur", claimed_epsilon=1.0, **wrong).filled())  # type: ignore[arg-type]
