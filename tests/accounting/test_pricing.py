"""Prices: equal to dp-accounting composing step by step, and honest about what is not valid."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.accounting import (
    ORDERS,
    Composed,
    Event,
    Gaussian,
    Laplace,
    NoisyMax,
    SelectiveAttempt,
    SelectiveRelease,
    Subsampled,
    Unbounded,
    curve,
    epsilon,
    price,
)
from reticent.accounting.pricing import capped_mass, total_curve
from reticent.accounting.renyi.conversions import to_epsilon
from reticent.accounting.selective.corners import noisy_test
from reticent.accounting.simplify import tally
from reticent.errors import SettingError, UnknownName

PAPER = np.arange(2, 65, dtype=float)

GRID = [(rate, noise) for rate in (1e-3, 0.01, 0.034, 0.1, 0.5) for noise in (0.7, 1.0, 1.4, 2.15, 5.0)]


@pytest.mark.parametrize(("rate", "noise"), GRID)
@pytest.mark.parametrize("steps", [2, 6])
def test_a_ledger_costs_what_the_library_says_step_by_step(rate: float, noise: float, steps: int) -> None:
    """50 settings, whole orders: equal events merged here, composed one by one there."""
    accountant = RdpAccountant(list(PAPER))
    step = dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(noise))
    for _ in range(steps):
        accountant.compose(step)
    events = tally([Subsampled(rate, Gaussian(noise))] * steps)
    ours, order = to_epsilon(PAPER, total_curve(events, PAPER), 1e-5)
    oracle, best = accountant.get_epsilon_and_optimal_order(1e-5)
    assert ours == pytest.approx(oracle, rel=1e-9, abs=1e-9)
    assert order == best or oracle == 0


@pytest.mark.each("plain", "calibrated")
def test_published_settings(row: dict[str, object]) -> None:
    """The golden noise has one epsilon by Renyi, one by losses; and losses <= Renyi <= 1.3 losses."""
    size, batch, epochs = row["size"], row["batch"], row["epochs"]
    for target, noise, pld in zip((0.5, 1, 2, 4), row["noise"], row["pld"], strict=True):
        events = {Subsampled(batch / size, Gaussian(noise)): epochs * (size // batch)}
        assert to_epsilon(PAPER, total_curve(events, PAPER), 1e-5)[0] == pytest.approx(target, rel=2e-4)
        cost = price(events, 1e-5)
        assert cost.pld == pytest.approx(pld, rel=1e-3)
        assert cost.epsilon == cost.pld <= cost.rdp <= 1.3 * cost.pld


def test_a_schedule_fixed_in_advance(golden) -> None:
    """Noise decay: first noise 4, 100 steps in each of 50 epochs; the last noises are the golden ones too."""
    shares = {
        "constant": [1.0] * 50,
        "exponential": [math.exp(-0.01 * t) for t in range(50)],
        "time": [1 / (1 + 0.05 * t) for t in range(50)],
        "step": [0.6 ** (t // 10) for t in range(50)],
        "polynomial": [0.5 * (1 - t / 100) ** 3 + 0.5 for t in range(50)],
    }
    for name, factors in shares.items():
        rdp, pld = golden("plain")["decay"][name]
        events = tally([Subsampled(0.01, Gaussian(4 * factor)) for factor in factors for _ in range(100)])
        assert to_epsilon(PAPER, total_curve(events, PAPER), 1e-5)[0] == pytest.approx(rdp, rel=1e-5)
        assert price(events, 1e-5).pld == pytest.approx(pld, rel=1e-3)


def test_statistics_are_two_gaussians(golden) -> None:
    table = golden("plain")["statistics"]
    calibrated = {1: 4.19828, 2: 2.33537}
    for index, noise in enumerate(table["noise"]):
        both = 2 * curve(Gaussian(noise), PAPER)
        assert to_epsilon(PAPER, both, 1e-5)[0] == pytest.approx(table["alone"][index], abs=6e-5)
        for target, sigma in calibrated.items():
            total = both + 870 * curve(Subsampled(2048 / 60000, Gaussian(sigma)), PAPER)
            assert to_epsilon(PAPER, total, 1e-5)[0] == pytest.approx(table[f"with_{target}"][index], abs=2e-3)


def test_the_sign_of_a_noisy_sum_costs_what_the_sum_costs() -> None:
    """Noise on the mean instead, as printed, is 512 times as much: hardly any epsilon is left."""
    noisy_sum, printed = (Subsampled(512 / 60000, Gaussian(noise)) for noise in (1.3121, 512 * 1.3121))
    assert to_epsilon(PAPER, 3510 * curve(noisy_sum, PAPER), 1e-5)[0] == pytest.approx(2.0, abs=2e-4)
    assert epsilon({printed: 3510}, 1e-5) < 0.0041
    assert to_epsilon(PAPER, 3510 * curve(printed, PAPER), 1e-5)[0] == pytest.approx(0.101, abs=1e-3)


def test_the_best_accountant_is_the_smaller_valid_one() -> None:
    events = {Subsampled(0.01, Gaussian(1.0)): 1000}
    best, pld, rdp = (price(events, 1e-5, accountant=name) for name in ("best", "pld", "rdp"))
    assert best.epsilon == min(pld.epsilon, rdp.epsilon)
    assert (best.rdp, best.pld) == (rdp.epsilon, pld.epsilon)
    assert rdp.pld is None
    assert rdp.order is not None


def test_no_loss_distribution_for_hidden_attempts() -> None:
    release = SelectiveRelease(SelectiveAttempt(0.1, 4.0, 0.01, 0.3, 0.6))
    assert price([release], 1e-5).pld is None
    with pytest.raises(SettingError, match="no loss distribution"):
        price([release], 1e-5, accountant="pld")


def test_one_unproved_event_makes_everything_infinite() -> None:
    cost = price([Gaussian(5.0), Unbounded("the test has no noise")], 1e-5)
    assert math.isinf(cost.epsilon)
    assert (cost.rdp, cost.pld, cost.why) == (None, None, "the test has no noise")


def test_nothing_costs_nothing() -> None:
    assert price([], 1e-5).epsilon == 0
    assert price({Gaussian(1.0): 0}, 1e-5).epsilon == 0


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-5, math.nan])
def test_a_delta_that_is_none_is_refused(delta: float) -> None:
    with pytest.raises(SettingError, match="delta"):
        price([Gaussian(1.0)], delta)


def test_an_unknown_accountant_is_named() -> None:
    with pytest.raises(UnknownName, match="did you mean 'pld'"):
        price([Gaussian(1.0)], 1e-5, accountant="pdl")


@settings(deadline=None, max_examples=8)
@given(
    rate=st.floats(-6, 0).map(lambda power: 10.0**power),
    noise=st.floats(math.log(0.3), math.log(100)).map(math.exp),
    steps=st.integers(1, 5000),
    delta=st.sampled_from([1e-3, 1e-5, 1e-7]),
)
def test_prices_are_sane_everywhere(rate: float, noise: float, steps: int, delta: float) -> None:
    """No warning, no overflow, losses at most Renyi; more steps, a higher rate or less noise never cost less."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        base = price({Subsampled(rate, Gaussian(noise)): steps}, delta)
        longer = price({Subsampled(rate, Gaussian(noise)): 2 * steps}, delta)
        likelier = price({Subsampled(min(1.0, 2 * rate), Gaussian(noise)): steps}, delta)
        quieter = price({Subsampled(rate, Gaussian(noise / 2)): steps}, delta)
    assert 0 <= base.epsilon < math.inf
    assert base.pld <= base.rdp * (1 + 1e-3) + 1e-6
    for dearer in (longer, likelier, quieter):
        assert dearer.rdp >= base.rdp * (1 - 1e-9)
        assert dearer.pld >= base.pld * (1 - 2e-3) - 1e-6


def test_thousands_of_different_steps_have_a_price() -> None:
    cost = price({Subsampled(0.01, Gaussian(4 - i / 1000)): 1 for i in range(2500)}, 1e-5)
    low, high = (epsilon({Subsampled(0.01, Gaussian(noise)): 2500}, 1e-5) for noise in (4.0, 1.5))
    assert low < cost.pld < cost.rdp < high * 1.2


@pytest.mark.parametrize(
    "event", [Gaussian(math.inf), Subsampled(0.1, Gaussian(math.inf)), NoisyMax(0.0), Composed(())]
)
def test_what_says_nothing_costs_nothing(event: Event) -> None:
    assert price([event], 1e-5).epsilon == 0


@pytest.mark.parametrize(
    "event",
    [
        Subsampled(0.1, Gaussian(1e7)),
        Gaussian(1e-3),
        Subsampled(0.1, Gaussian(0.01)),
        NoisyMax(1e-9),
        NoisyMax(50.0),
        Laplace(1e-3),
        SelectiveAttempt(0.0, 1.0, 0.1, 0.2, 0.5),
        SelectiveAttempt(0.1, 1.0, 0.0, 0.0, 1.0),
        SelectiveAttempt(0.1, 1.0, 1.0, 0.2, 0.5, 0.0),
    ],
)
def test_extremes_have_a_finite_price(event: Event) -> None:
    assert math.isfinite(price([event], 1e-5).epsilon)


def test_the_cap_takes_its_share_of_delta() -> None:
    attempt = noisy_test(2048 / 60000, 2.15, 256 / 60000, 0.8, -1.0)
    free, loose, tight = (epsilon({SelectiveRelease(attempt, cap): 200}, 1e-5) for cap in (None, 300, 170))
    assert capped_mass({SelectiveRelease(attempt, 300): 2000}) == pytest.approx(6e-12, rel=0.1)
    assert free <= loose <= free * (1 + 1e-5)
    assert tight > loose
    main = 1e-5 - (1 + math.exp(tight)) * capped_mass({SelectiveRelease(attempt, 170): 200})
    assert to_epsilon(ORDERS, 200 * curve(SelectiveRelease(attempt)), main)[0] <= tight
    assert math.isinf(epsilon({SelectiveRelease(attempt, 20): 200}, 1e-5))
    quiet = SelectiveAttempt(1.0, 0.02, 0.0, 0.9, 0.9)
    assert epsilon({SelectiveRelease(quiet): 1}, 1e-5) > 700
    assert math.isinf(epsilon({SelectiveRelease(quiet, 312): 1}, 1e-5))  # exp(epsilon) outgrows any cut
