"""Calibration: never above the target, close below it, for every method."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.accounting import Budget, Gaussian, Subsampled, Unbounded, epsilon
from reticent.accounting.calibrate import least_noise, noise_multiplier, rounds, steps_of
from reticent.errors import SettingError


@pytest.mark.parametrize("target", [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0])
@pytest.mark.parametrize(("rate", "count"), [(0.01, 1000), (0.5, 50)])
def test_noise_is_just_enough(target: float, rate: float, count: int) -> None:
    noise = noise_multiplier(target, 1e-5, rate, count)
    assert 0.995 * target < epsilon({Subsampled(rate, Gaussian(noise)): count}, 1e-5) <= target


@settings(deadline=None, max_examples=6)
@given(
    target=st.floats(math.log(0.01), math.log(100)).map(math.exp),
    rate=st.floats(-4, 0).map(lambda power: 10.0**power),
    count=st.integers(1, 3000),
    accountant=st.sampled_from(["best", "rdp"]),
)
def test_noise_is_never_too_little(target: float, rate: float, count: int, accountant: str) -> None:
    noise = noise_multiplier(target, 1e-5, rate, count, accountant)
    assert epsilon({Subsampled(rate, Gaussian(noise)): count}, 1e-5, accountant=accountant) <= target


def test_published_noises_by_renyi(golden) -> None:
    row = golden("plain")["calibrated"][0]
    for target, noise in zip((0.5, 1.0), row["noise"], strict=False):
        ours = noise_multiplier(target, 1e-5, 2048 / 60000, 870, "rdp")
        assert 0.995 * noise < ours <= noise * (1 + 1e-4)  # more orders than 2..64: never more noise


def test_losses_need_less_noise_than_renyi() -> None:
    by_loss, by_renyi = (noise_multiplier(1.0, 1e-5, 2048 / 60000, 870, name) for name in ("pld", "rdp"))
    assert by_loss / 4.1983 == pytest.approx(0.9231, abs=2e-3)
    assert by_loss < by_renyi


def test_rounds_are_the_most_that_fit() -> None:
    count = rounds(lambda count: steps_of(0.02, 1.5, count), Budget(2.0, 1e-5))
    assert epsilon(steps_of(0.02, 1.5, count), 1e-5) <= 2.0 < epsilon(steps_of(0.02, 1.5, count + 1), 1e-5)


def test_rounds_respect_the_most() -> None:
    budget = Budget(1.0, 1e-5)
    assert rounds(lambda count: {Gaussian(10.0): count}, budget) == 7
    assert rounds(lambda count: {Gaussian(10.0): count}, budget, most=3) == 3
    assert rounds(lambda count: {Gaussian(0.1): count}, budget) == 0


def test_what_cannot_be_afforded_is_told() -> None:
    with pytest.raises(SettingError, match="besides costs more"):
        least_noise(lambda noise: {Gaussian(noise): 1, Gaussian(1.0): 1}, Budget(1.0, 1e-5))
    with pytest.raises(SettingError):
        least_noise(lambda noise: {Gaussian(noise): 1, Unbounded("no proof"): 1}, Budget(1.0, 1e-5))
    with pytest.raises(SettingError, match="sample rate"):
        noise_multiplier(1.0, 1e-5, 1.5, 10)
    with pytest.raises(SettingError, match="more rounds than anybody"):
        rounds(lambda count: {}, Budget(1.0, 1e-5))
