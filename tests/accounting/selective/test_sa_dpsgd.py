"""The first accepted of at most m candidates: golden numbers, limits, and a search for worse rules."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from reticent.accounting import AnnealedRelease, Gaussian, Subsampled, epsilon, price
from reticent.accounting.renyi.sampled_gaussian import subsampled_gaussian
from reticent.accounting.selective import moments as nodes
from reticent.accounting.selective.moments import moments
from reticent.accounting.selective.sa_dpsgd import MARGIN, CandidateSums, _log_excess, annealed_curve


def release_of(row: dict) -> AnnealedRelease:
    return AnnealedRelease(row["rate"][0] / row["rate"][1], row["noise"], row["rejections"])


@pytest.mark.each("annealed", "setting")
def test_golden_divergences(row: dict) -> None:
    event, orders = release_of(row), np.array(row["orders"], dtype=float)
    np.testing.assert_allclose(subsampled_gaussian(event.rate, event.noise_multiplier, orders), row["plain"], rtol=5e-6)
    for sign, column in ((1, "removed"), (-1, "added")):
        found = [_log_excess(moments(event.rate, event.noise_multiplier, order, sign), event) for order in orders]
        np.testing.assert_allclose(np.logaddexp(0, found) / (orders - 1), row[column], rtol=1e-5)
    np.testing.assert_allclose(annealed_curve(event, orders), np.array(row["removed"]) * MARGIN, rtol=1e-5)


def test_more_rejections_cost_more_and_never_more_than_all_candidates(golden) -> None:
    table, order = golden("annealed")["ratio"], np.array([4.0])
    plain = subsampled_gaussian(2048 / 60000, 2.15, order)[0]
    for rejections, expected in zip(table["rejections"], table["ratio"], strict=True):
        found = annealed_curve(AnnealedRelease(2048 / 60000, 2.15, rejections), order)[0] / plain
        assert found == pytest.approx(expected, rel=2e-3)
        assert found <= rejections + 1


def test_past_the_phase_transition_it_costs_nearly_all_candidates() -> None:
    order = np.array([24.0])
    found = annealed_curve(AnnealedRelease(512 / 60000, 1.23, 10), order)[0]
    assert found / subsampled_gaussian(512 / 60000, 1.23, order)[0] == pytest.approx(10.6, abs=0.05)


@pytest.mark.each("annealed", "whole")
def test_golden_epsilons_of_whole_runs(row: dict, golden) -> None:
    event = release_of(next(entry for entry in golden("annealed")["setting"] if entry["name"] == row["name"]))
    step = Subsampled(event.rate, Gaussian(event.noise_multiplier))
    assert price({event: row["accepted"]}, 1e-5).rdp == pytest.approx(row["sound"], rel=1.5e-3)
    candidates = (event.max_rejections + 1) * row["accepted"]
    assert epsilon({step: candidates}, 1e-5, accountant="rdp") == pytest.approx(row["all"], rel=5e-3)
    for share, expected in zip((1.25, 1.5, 2, 3), row["every"], strict=True):
        found = epsilon({step: round(share * row["accepted"])}, 1e-5, accountant="rdp")
        assert found == pytest.approx(expected, rel=5e-3)


@pytest.mark.parametrize(
    ("rate", "noise", "rejections"), [(0.02, 1.0, 3), (0.2, 2.0, 10), (1.0, 3.0, 1), (0.5, 1.0, 5)]
)
def test_no_rule_costs_more_than_the_bound(rate: float, noise: float, rejections: int) -> None:
    """Random rules, sharp and soft, on 32 cells of outcomes, in both directions."""
    rng = np.random.default_rng(3)
    edges = np.array([-np.inf, *(np.linspace(-4, 4, 31) * noise + 0.5), np.inf])
    absent, moved = (np.diff(ndtr((edges - mean) / noise)) for mean in (0, 1))
    present = (1 - rate) * absent + rate * moved
    sharp = np.sort(rng.integers(0, 33, (2000, 2)), axis=1)
    place = np.arange(32)
    rules = ((place >= sharp[:, :1]) & (place < sharp[:, 1:])).astype(float)
    rules[::2] = 1 - rules[::2]
    rules = np.concatenate([rules, rng.random((1000, 32)), rng.integers(0, 2, (1000, 32)).astype(float)])
    for order in (2.0, 6.0):
        bound = annealed_curve(AnnealedRelease(rate, noise, rejections), np.array([order]))[0]
        worst = 0.0
        for p, q in ((present, absent), (absent, present)):
            laws = []
            for law in (p, q):
                chance = np.clip(rules @ law, 1e-12, 1 - 1e-12)[:, None]
                forced = (1 - chance) ** rejections
                laws.append(law * (rules * (1 - forced) / chance + forced))
            worst = max(worst, (np.log((laws[0] ** order * laws[1] ** (1 - order)).sum(axis=1)) / (order - 1)).max())
        assert 0.6 * bound <= worst <= bound


def test_safe_everywhere() -> None:
    orders = np.array([1.1, 2.0, 16.0, 128.0, 512.0])
    for rate, noise in ((1e-8, 0.2), (1e-8, 1000.0), (0.01, 1.0), (1.0, 0.2)):
        found = annealed_curve(AnnealedRelease(rate, noise, 10), orders)
        plain = subsampled_gaussian(rate, noise, orders)
        assert (found >= plain).all()
        assert (found <= 11 * plain * (1 + 1e-12)).all()


@pytest.mark.parametrize(("rate", "noise", "rejections"), [(0.034, 2.15, 10), (0.5, 0.2, 3), (1e-6, 0.7, 10)])
def test_the_search_finds_the_best_of_all_pairs_of_thresholds(
    rate: float, noise: float, rejections: int, monkeypatch
) -> None:
    monkeypatch.setattr(nodes, "NODES", 401)
    event, (start, stop) = AnnealedRelease(rate, noise, rejections), np.triu_indices(402)
    for order in (1.2, 8.0, 256.0):
        for sign in (1, -1):
            found = moments(rate, noise, order, sign)
            best, _, _ = CandidateSums(found, rejections).best(start, stop)
            assert _log_excess(found, event) == pytest.approx(np.log(best) + found.scale, rel=1e-9)
