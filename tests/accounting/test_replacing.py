"""Replacing one example: never below the truth, and close to it for sampled Gaussians."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting import NeighboringRelation
from dp_accounting.pld import privacy_loss_distribution as library
from scipy import integrate
from scipy.stats import norm

from reticent.accounting import (
    ORDERS,
    AnnealedRelease,
    Budget,
    Concentrated,
    Event,
    Gaussian,
    Laplace,
    NoisyMax,
    RenyiFilter,
    SelectiveAttempt,
    SelectiveRelease,
    Subsampled,
    calibrate,
    epsilon,
    price,
)
from reticent.accounting.pricing import capped_mass, total_curve
from reticent.accounting.renyi.conversions import to_epsilon
from reticent.accounting.renyi.curves import laplace, pure
from reticent.accounting.renyi.replaced import replaced, triangle
from reticent.audits.gaussian import gdp_epsilon
from reticent.errors import SettingError, UnknownName

ATTEMPT = SelectiveAttempt(0.05, 2.0, 0.02, 0.2, 0.6)


def law(z: np.ndarray, rate: float, noise: float, shift: float) -> np.ndarray:
    """The density of one noisy coordinate when a record of this gradient is drawn at this rate."""
    return (1 - rate) * norm.pdf(z, 0, noise) + rate * norm.pdf(z, shift, noise)


@pytest.mark.parametrize(("rate", "noise"), [(0.01, 1.0), (0.3, 0.5), (0.034, 2.15), (0.9, 1.0), (0.5, 8.0)])
@pytest.mark.parametrize("order", [1.5, 2.0, 7.3, 20.0])
def test_the_curve_is_the_integral(rate: float, noise: float, order: float) -> None:
    def log_density(z: float, shift: float) -> float:  # by hand: scipy's takes a hundred times as long for one number
        at, moved = -0.5 * (z / noise) ** 2, -0.5 * ((z - shift) / noise) ** 2
        top = max(at, moved)
        mixed = (1 - rate) * math.exp(at - top) + rate * math.exp(moved - top)
        return top + math.log(mixed) - math.log(noise * math.sqrt(2 * math.pi))

    def exponent(z: float) -> float:
        return order * log_density(z, 1.0) + (1 - order) * log_density(z, -1.0)

    top = max(map(exponent, np.linspace(-1, 2 * order, 2000)))
    ends = -1 - 10 * noise, 2 * order + 10 * noise
    total = integrate.quad(lambda z: math.exp(exponent(z) - top), *ends, points=np.linspace(*ends, 60), limit=2000)[0]
    exact = (top + math.log(total)) / (order - 1)
    ours = replaced(Subsampled(rate, Gaussian(noise)), np.array([order]))[0]
    assert ours == pytest.approx(exact, rel=1e-5)
    assert ours >= exact * (1 - 1e-9) - 1e-12


@pytest.mark.parametrize(
    ("rate", "noise", "steps"), [(0.01, 1.0, 1000), (0.034, 2.15, 500), (0.2, 4.0, 200), (1.0, 9.0, 30)]
)
def test_a_run_costs_about_what_the_library_says(rate: float, noise: float, steps: int) -> None:
    """The library's loss distribution of the replaced record, from below and from above."""
    low, high = (
        library.from_gaussian_mechanism(
            noise,
            sampling_prob=rate,
            pessimistic_estimate=above,
            use_connect_dots=above,
            neighboring_relation=NeighboringRelation.REPLACE_ONE,
        )
        .self_compose(steps)
        .get_epsilon_for_delta(1e-5)
        for above in (False, True)
    )
    ours = epsilon({Subsampled(rate, Gaussian(noise)): steps}, 1e-5, adjacency="replace")
    assert low <= ours <= 1.25 * high


@pytest.mark.parametrize(("rate", "noise"), [(0.05, 0.8), (0.4, 1.0), (0.8, 2.0), (1.0, 3.0)])
def test_one_step_leaves_no_more_than_delta(rate: float, noise: float) -> None:
    cost = price({Subsampled(rate, Gaussian(noise)): 1}, 1e-5, adjacency="replace").epsilon
    z = np.arange(-12 * noise - 2, 12 * noise + 2, noise / 2000)
    beyond = law(z, rate, noise, 1.0) - math.exp(cost) * law(z, rate, noise, -1.0)
    assert np.maximum(beyond, 0).sum() * (z[1] - z[0]) <= 1e-5


@pytest.mark.parametrize("limit", [0.0, 0.3, 1.5])
@pytest.mark.parametrize(("rate", "noise"), [(0.1, 0.7), (0.5, 1.0), (0.9, 0.5)])
def test_opposite_records_are_the_worst(rate: float, noise: float, limit: float) -> None:
    """No pair of vectors within the clip norm has a larger hockey stick: in the plane, which is all two span."""
    step = noise / 12
    z = np.stack(np.meshgrid(*[np.arange(-1 - 7 * noise, 1 + 7 * noise, step)] * 2), axis=-1)

    def stick(one: np.ndarray, other: np.ndarray) -> float:
        laws = [norm.pdf(z - center, 0, noise).prod(-1) for center in (np.zeros(2), one, other)]
        gap = (1 - rate) * laws[0] * (1 - math.exp(limit)) + rate * (laws[1] - math.exp(limit) * laws[2])
        return float(np.maximum(gap, 0).sum() * step**2)

    rng, ahead = np.random.default_rng(0), np.array([1.0, 0.0])
    worst = stick(ahead, -ahead)
    for _ in range(30):
        one, other = (way / np.linalg.norm(way) * rng.random() ** 0.2 for way in rng.normal(size=(2, 2)))
        assert stick(one, other) <= worst + 1e-4


@pytest.mark.parametrize("event", [Gaussian(1.3), Subsampled(0.1, Gaussian(1.0)), Subsampled(0.01, Gaussian(3.0))])
def test_the_triangle_is_never_below_the_exact_curve(event: Event) -> None:
    assert (triangle(event, ORDERS) >= replaced(event) * (1 - 1e-5)).all()


def test_the_triangle_bounds_what_is_known_two_records_away() -> None:
    assert (replaced(Laplace(2.0)) >= laplace(2 / 2.0, ORDERS)).all()
    assert (replaced(NoisyMax(0.3)) >= pure(0.6, ORDERS) * (1 - 1e-9)).all()
    assert (replaced(Concentrated(0.1)) >= 4 * 0.1 * ORDERS * (1 - 1e-9)).all()


@pytest.mark.parametrize("event", [ATTEMPT, SelectiveRelease(ATTEMPT), AnnealedRelease(0.05, 2.0, 3)])
def test_selected_updates_cost_more_when_replaced_and_not_absurdly(event: Event) -> None:
    """Their test may ignore the record, or not: at least what a plain removal costs, at most some six times that."""
    once = epsilon({event: 100}, 1e-5, accountant="rdp")
    assert 1.5 * once < epsilon({event: 100}, 1e-5, adjacency="replace") < 6 * once


def test_full_batches_move_twice_as_far() -> None:
    for noise in (1.0, 4.0):
        exact = gdp_epsilon(2 / noise, 1e-5)
        assert exact <= epsilon([Gaussian(noise)], 1e-5, adjacency="replace") <= 1.3 * exact


def test_a_cap_takes_its_share_of_delta_for_both_datasets() -> None:
    events = {SelectiveRelease(ATTEMPT, cap=80): 20}
    cut = capped_mass(events)
    found = price(events, 1e-5, adjacency="replace").epsilon
    free = to_epsilon(ORDERS, total_curve({SelectiveRelease(ATTEMPT): 20}, exchanged=True), 1e-5)[0]
    left = 1e-5 - (1 + math.exp(found)) * cut
    assert 0 < left < 1e-5
    assert free < found
    assert found >= to_epsilon(ORDERS, total_curve(events, exchanged=True), left)[0]
    assert math.isinf(price({SelectiveRelease(ATTEMPT, cap=20): 20}, 1e-5, adjacency="replace").epsilon)


def test_a_filter_adds_up_replaced_curves() -> None:
    order, step = 8.0, Subsampled(0.1, Gaussian(2.0))
    filter = RenyiFilter(order, 3.0, 1e-5, "replace")
    assert filter.cost(step) == replaced(step, np.array([order]))[0] > RenyiFilter(order, 3.0, 1e-5).cost(step)
    count = 0
    while filter.covers(step):
        filter.spend(step)
        count += 1
    assert (
        epsilon({step: count}, 1e-5, adjacency="replace") <= 3.0 < epsilon({step: 2 * count}, 1e-5, adjacency="replace")
    )
    assert filter.price(1e-5).adjacency == "replace"


@pytest.mark.each("replaced", "rows")
def test_golden_numbers(row: dict[str, float]) -> None:
    events = {Subsampled(row["rate"], Gaussian(row["noise"])): int(row["steps"])}
    found = price(events, row["delta"], adjacency="replace")
    assert found.epsilon == pytest.approx(row["epsilon"], rel=1e-5)
    assert row["library"] <= found.epsilon
    assert (found.accountant, found.pld, found.adjacency) == ("rdp", None, "replace")


def test_calibration_keeps_to_a_replaced_budget() -> None:
    noise = calibrate.noise_multiplier(2.0, 1e-5, sample_rate=0.05, steps=100, adjacency="replace")
    step = {Subsampled(0.05, Gaussian(noise)): 100}
    assert 1.99 < epsilon(step, 1e-5, adjacency="replace") <= 2.0
    assert noise > calibrate.noise_multiplier(2.0, 1e-5, sample_rate=0.05, steps=100)


def test_zero_out_and_add_or_remove_have_one_price() -> None:
    step = {Subsampled(0.05, Gaussian(1.0)): 100}
    both = [price(step, 1e-5, adjacency=adjacency) for adjacency in ("zero-out", "add-or-remove")]
    assert both[0].epsilon == both[1].epsilon
    assert [cost.adjacency for cost in both] == ["zero-out", "add-or-remove"]


def test_what_is_not_offered_is_refused() -> None:
    with pytest.raises(SettingError, match="Renyi"):
        price([Gaussian(1.0)], 1e-5, accountant="pld", adjacency="replace")
    with pytest.raises(UnknownName, match="zero-out"):
        price([Gaussian(1.0)], 1e-5, adjacency="remove")  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match="adjacency"):
        Budget(1.0, 1e-5, adjacency="swap")  # type: ignore[arg-type]
