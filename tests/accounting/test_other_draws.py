"""Prices of draws other than Poisson's: against dp-accounting where it has them, and against the laws themselves."""

from __future__ import annotations

import math
from itertools import combinations, pairwise

import numpy as np
import pytest
from scipy.stats import norm

from reticent.accounting import (
    ORDERS,
    BinInTurn,
    FixedSize,
    Gaussian,
    Laplace,
    OnceIn,
    Subsampled,
    Truncated,
    curve,
    epsilon,
    price,
)
from reticent.accounting.event_json import from_json, to_json
from reticent.accounting.events import Event
from reticent.accounting.losses.allocated import allocated_loss
from reticent.accounting.losses.gaussian import gaussian_loss
from reticent.accounting.losses.swapped import mixed_loss, swapped_loss
from reticent.accounting.renyi import allocated as bins
from reticent.accounting.renyi import swapped as sized
from reticent.accounting.renyi.replaced import replaced
from reticent.accounting.simplify import tally
from reticent.accounting.spending import Spending
from reticent.errors import SettingError

FIXED, CUT, ONCE = (
    FixedSize(50, 1000, Gaussian(2.0)),
    Truncated(0.05, 64, 1000, Gaussian(2.0)),
    OnceIn(20, Gaussian(2.0)),
)


@pytest.mark.parametrize("event", [FIXED, CUT, ONCE, BinInTurn(3, 20, Gaussian(1.0))])
def test_events_survive_json(event: Event) -> None:
    assert from_json(to_json(event)) == event


@pytest.mark.parametrize(("rate", "noise"), [(0.01, 1.0), (0.3, 0.6), (0.05, 4.0)])
def test_no_pair_of_gradients_is_further_apart_than_the_swapped_pair(rate: float, noise: float) -> None:
    """In one dimension: whoever is pushed out, with the record, without, exchanged, or one more than before."""
    loss = swapped_loss(rate, noise, 1e-3)
    x = np.linspace(-12 * noise, 12 * noise, 4001)
    for other in (-1.0, 0.0, 1.0):
        for mine in (-1.0, 0.5, 1.0):
            present = (1 - rate) * norm.pdf(x, other, noise) + rate * norm.pdf(x, mine, noise)
            for instead in (-1.0, 0.0, 1.0, other):
                absent = (1 - rate) * norm.pdf(x, other, noise) + rate * norm.pdf(x, instead, noise)
                for eps in (-0.5, 0.0, 0.1, 1.0):
                    apart = float(np.trapezoid(np.maximum(present - math.exp(eps) * absent, 0.0), x))
                    assert apart <= loss.delta(eps) + 1e-6


def test_the_worst_exchange_reaches_the_swapped_pair() -> None:
    rate, noise, x = 0.1, 1.5, np.linspace(-20, 20, 40_001)
    present, absent = (1 - rate) * norm.pdf(x, -1, noise) + rate * norm.pdf(x, 1, noise), norm.pdf(x, -1, noise)
    loss = swapped_loss(rate, noise, 1e-4)
    for eps in (0.0, 0.2, 1.0):
        assert loss.delta(eps) == pytest.approx(
            np.trapezoid(np.maximum(present - math.exp(eps) * absent, 0), x), rel=1e-4
        )


@pytest.mark.parametrize(("rate", "noise", "order"), [(0.01, 2.0, 3.0), (0.2, 2.5, 6.5), (0.05, 8.0, 20.0)])
def test_the_curve_is_that_of_the_loss_distribution(rate: float, noise: float, order: float) -> None:
    loss = swapped_loss(rate, noise, 2e-4)
    moment = math.log(float(np.exp((order - 1) * loss.values) @ loss.mass)) / (order - 1)
    assert sized.swapped(rate, noise, np.array([order]))[0] == pytest.approx(moment, rel=2e-3)


def test_twice_the_nodes_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    found = sized._swapped.__wrapped__(0.03, 0.5, (1.1, 8.0, 200.0))
    monkeypatch.setattr(sized, "NODES", 24)
    assert sized._swapped.__wrapped__(0.03, 0.5, (1.1, 8.0, 200.0)) == pytest.approx(found, rel=1e-11)


def test_fixed_sizes_cost_no_more_than_the_library_says() -> None:
    from dp_accounting import dp_event, rdp
    from dp_accounting.privacy_accountant import NeighboringRelation

    for batch, size, noise, rounds in ((50, 1000, 2.0, 300), (100, 10_000, 4.0, 1000)):
        said = rdp.RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_ONE)
        inner = dp_event.GaussianDpEvent(noise / 2)  # which an exchange moves by twice the bound
        said.compose(dp_event.SampledWithoutReplacementDpEvent(size, batch, inner), rounds)
        events = {FixedSize(batch, size, Gaussian(noise)): rounds}
        assert 0.5 * said.get_epsilon(1e-5) < epsilon(events, 1e-5, adjacency="replace") <= said.get_epsilon(1e-5)
        assert epsilon(events, 1e-5) <= epsilon(events, 1e-5, adjacency="replace")
        assert epsilon(events, 1e-5) == epsilon(events, 1e-5, adjacency="add-or-remove")
        assert epsilon(events, 1e-5) > epsilon({Subsampled(batch / size, Gaussian(noise)): rounds}, 1e-5)


def test_a_batch_of_everybody_is_one_exchange() -> None:
    assert curve(FixedSize(10, 10, Gaussian(2.0))) == pytest.approx(4 * curve(Gaussian(2.0)))
    assert epsilon([FixedSize(10, 10, Gaussian(2.0))], 1e-5) == pytest.approx(epsilon([Gaussian(1.0)], 1e-5), rel=1e-3)


def test_a_cap_costs_about_what_the_library_says() -> None:
    from dp_accounting import dp_event
    from dp_accounting.pld.pld_privacy_accountant import PLDAccountant

    for most in (50, 64, 95):
        said = PLDAccountant(value_discretization_interval=1e-3)
        said.compose(dp_event.TruncatedSubsampledGaussianDpEvent(1000, 0.05, most, 2.0), 300)
        found = epsilon({Truncated(0.05, most, 1000, Gaussian(2.0)): 300}, 1e-5)
        assert 0.75 * said.get_epsilon(1e-5) <= found <= 1.001 * said.get_epsilon(1e-5)


def test_a_cap_that_is_never_met_costs_nothing() -> None:
    plain = {Subsampled(0.05, Gaussian(2.0)): 300}
    for adjacency in ("zero-out", "replace"):
        free = epsilon({Truncated(0.05, 1000, 1000, Gaussian(2.0)): 300}, 1e-5, adjacency=adjacency)  # type: ignore[arg-type]
        assert free == pytest.approx(epsilon(plain, 1e-5, adjacency=adjacency), rel=1e-3)  # type: ignore[arg-type]


def test_how_often_a_draw_is_cut_is_counted_set_by_set() -> None:
    rate, most, size = 0.4, 2, 5
    full = inside = 0.0
    for count in range(size):
        for _ in combinations(range(size - 1), count):
            chance = rate**count * (1 - rate) ** (size - 1 - count)
            if count >= most:
                full += chance
                inside += chance * rate * most / (count + 1)
    assert sized.cut_short(rate, most, size) == pytest.approx((full, inside / full))


def test_a_cap_is_not_priced_where_the_number_of_examples_is_private() -> None:
    for events in ([CUT], [CUT, Gaussian(9.0)]):
        cost = price(events, 1e-5, adjacency="add-or-remove")
        assert math.isinf(cost.epsilon)
        assert "number of examples" in cost.why
    assert math.isinf(Spending({CUT: 1}).divergence(4.0, "add-or-remove"))
    assert "number of examples" in (Spending({CUT: 1}).why_not(4.0, "add-or-remove") or "")
    assert math.isfinite(Spending({CUT: 1}).divergence(4.0, "replace"))


@pytest.mark.parametrize(("noise", "order"), [(1.0, 2), (1.0, 5), (2.0, 9)])
def test_an_epoch_of_two_rounds_is_the_integral(noise: float, order: int) -> None:
    x = np.arange(-14 * noise, 14 * noise + order, noise / 8)
    log_mass = norm.logpdf(x, 0, noise) + math.log(noise / 8)
    ratio = np.logaddexp.outer((x - 0.5) / noise**2, (x - 0.5) / noise**2) - math.log(2)
    mass = np.add.outer(log_mass, log_mass)

    def both(power: float) -> float:
        return float(np.exp(power * ratio + mass).sum())

    largest = max(both(order), both(1 - order))
    assert bins.allocated(2, noise, np.array([float(order)]))[0] == pytest.approx(
        math.log(largest) / (order - 1), rel=1e-5
    )


@pytest.mark.parametrize(("rounds", "noise"), [(7, 0.8), (100, 1.5), (2000, 0.6)])
def test_the_second_moment_of_an_epoch_is_known(rounds: int, noise: float) -> None:
    found = np.exp(bins._log_excess_present(rounds, noise)[0])
    assert found == pytest.approx(math.expm1(1 / noise**2) / rounds, rel=1e-9)


def test_finer_rules_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    found = bins._log_excess_absent(12, 0.9)
    monkeypatch.setattr(bins, "STEP", 0.02)
    monkeypatch.setattr(bins, "START", -35.0)
    assert bins._log_excess_absent(12, 0.9) == pytest.approx(found, abs=1e-9)


def test_the_loss_of_two_rounds_is_the_integral() -> None:
    noise, x = 1.2, np.linspace(-11, 13, 2401)
    pdf = norm.pdf(x, 0, noise) * (x[1] - x[0])
    ratio = np.add.outer(np.exp((x - 0.5) / noise**2), np.exp((x - 0.5) / noise**2)) / 2
    mass = np.multiply.outer(pdf, pdf)
    removed, added = allocated_loss(2, noise, 1e-3)
    for eps in (0.0, 0.3, 1.0, 2.0):
        told = float((np.maximum(ratio - math.exp(eps), 0) * mass).sum())
        assert told * (1 - 1e-6) <= removed.delta(eps) <= told * 1.002 + 1e-8
        told = float((np.maximum(1 - math.exp(eps) * ratio, 0) * mass).sum())
        assert told * (1 - 1e-6) <= added.delta(eps) <= told * 1.1 + 1e-8  # near 0 the grid is coarse


def test_the_loss_of_one_bin_is_a_gaussians_and_none_is_lost() -> None:
    for loss, plain in zip(allocated_loss(1, 2.0, 1e-3), gaussian_loss(1.0, 2.0, 1e-3), strict=True):
        assert float(loss.mass.sum()) + loss.infinite == pytest.approx(1.0, abs=1e-9)
        for eps in (0.0, 0.5, 1.5):
            assert plain.delta(eps) * (1 - 1e-6) <= loss.delta(eps) <= plain.delta(eps) * 1.05


def test_epochs_cost_less_by_their_losses_and_less_than_coins() -> None:
    for bins_, noise in ((20, 2.0), (100, 1.0)):
        cost = price({OnceIn(bins_, Gaussian(noise)): 15}, 1e-5)
        assert cost.accountant == "pld"
        coins = epsilon({Subsampled(1 / bins_, Gaussian(noise)): 15 * bins_}, 1e-5)
        assert 0.85 * coins < cost.epsilon < min(coins, cost.rdp or 0.0)
    assert price({OnceIn(20, Gaussian(0.4)): 1}, 1e-5).accountant == "rdp", "too little noise for the grid"


def test_one_bin_is_a_gaussian_and_more_bins_cost_less() -> None:
    orders = np.array([1.5, 2.0, 7.3, 128.0])
    assert curve(OnceIn(1, Gaussian(2.0)), orders) == pytest.approx(curve(Gaussian(2.0), orders))
    costs = [curve(OnceIn(rounds, Gaussian(1.2)), orders) for rounds in (1, 2, 5, 40)]
    for more, fewer in pairwise(costs):
        assert (fewer < more).all()
    assert np.isinf(curve(OnceIn(5, Gaussian(1.2)), np.array([129.0])))


def test_an_epoch_is_near_that_of_poisson_and_below_it_by_curves() -> None:
    """With a chance of 1/20 in each of 20 rounds instead of one of them: at these noises more is told."""
    orders = np.array([2.0, 4.0, 16.0, 64.0])
    for noise in (1.0, 2.0, 8.0):
        assert (
            curve(OnceIn(20, Gaussian(noise)), orders) <= 20 * curve(Subsampled(0.05, Gaussian(noise)), orders)
        ).all()


def test_other_noise_has_no_price() -> None:
    for event in (FixedSize(5, 10, Laplace(1.0)), Truncated(0.5, 5, 10, Laplace(1.0)), OnceIn(5, Laplace(1.0))):
        assert math.isinf(epsilon([event], 1e-5))


def test_turns_of_bins_are_epochs() -> None:
    turns = {BinInTurn(turn, 3, Gaussian(1.0)): 2 if turn == 0 else 1 for turn in range(3)}
    assert tally(turns) == {OnceIn(3, Gaussian(1.0)): 2}
    assert tally({BinInTurn(1, 3, Gaussian(1.0)): 2}) == {OnceIn(3, Gaussian(1.0)): 2}, "turns without a beginning"
    assert replaced(BinInTurn(0, 3, Gaussian(4.0)), np.array([4.0])) > curve(
        BinInTurn(0, 3, Gaussian(4.0)), np.array([4.0])
    )


def test_mixtures_keep_their_mass() -> None:
    one, other = swapped_loss(0.1, 2.0, 1e-2), swapped_loss(0.3, 1.0, 1e-2)
    both = mixed_loss(0.25, one, other)
    for eps in (-0.3, 0.0, 0.7):
        assert both.delta(eps) == pytest.approx(0.75 * one.delta(eps) + 0.25 * other.delta(eps), rel=1e-9)
    assert float(both.mass.sum() + both.infinite) == pytest.approx(1.0)


def test_what_cannot_be_is_refused() -> None:
    for wrong in (
        lambda: FixedSize(0, 5, Gaussian(1.0)),
        lambda: Truncated(0.5, 0, 5, Gaussian(1.0)),
        lambda: OnceIn(0, CUT),
    ):
        with pytest.raises(SettingError, match="cannot be"):
            wrong()
    with pytest.raises(SettingError, match="cannot be"):
        BinInTurn(3, 3, Gaussian(1.0))


def test_curves_grow_with_the_order() -> None:
    for event in (FIXED, CUT, ONCE):
        found = curve(event, ORDERS[ORDERS <= 128])
        assert (np.diff(found) >= -1e-12).all()
