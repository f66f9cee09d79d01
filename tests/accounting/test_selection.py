"""The best of a random number of trials costs what is said: by exact laws, another accountant, and wrong prices."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.rdp import RdpAccountant
from numpy.typing import NDArray
from scipy.special import logsumexp

from reticent.accounting import ORDERS, BestTrial, Composed, Gaussian, Repeated, Subsampled, curve, price
from reticent.accounting.event_json import from_json, to_json
from reticent.accounting.events import SelectiveAttempt, SelectiveRelease
from reticent.accounting.renyi.replaced import replaced
from reticent.accounting.selection import best_trial, draw_trials, expected_trials, gamma_for
from reticent.errors import SettingError

Array = NDArray[np.float64]
LAWS = [(0.0, 0.1), (1.0, 0.2), (-0.5, 0.05), (3.0, 0.4)]


def generating(share: Array, eta: float, gamma: float) -> Array:
    """E[share^K]: the chance that all K trials do no better than what one does with this chance."""
    left = 1 - (1 - gamma) * share
    return np.log(left) / math.log(gamma) if eta == 0 else (left**-eta - 1) / (gamma**-eta - 1)


def released(trial: Array, eta: float, gamma: float) -> Array:
    """The exact law of the best outcome, where a later outcome is a better one."""
    return np.diff(generating(np.concatenate([[0.0], np.cumsum(trial)]), eta, gamma))


def divergence(one: Array, other: Array, order: float) -> float:
    return float(logsumexp(order * np.log(one) + (1 - order) * np.log(other)) / (order - 1))


def pairs(count: int) -> list[tuple[Array, Array]]:
    """Laws of one trial on neighbouring data: random ones, and ones that differ in a rare and best outcome."""
    random = np.random.RandomState(0)
    found = []
    for number in range(count):
        one = random.dirichlet(np.full(6, 0.7)) + 1e-6
        other = one * np.exp(random.uniform(-0.8, 0.8, 6))
        found.append((one / one.sum(), other / other.sum()))
        rare = 10.0 ** -(1 + number % 4)
        raised = rare * math.e
        found.append((np.array([1 - rare, rare]), np.array([1 - raised, raised])))
    return found


@pytest.mark.parametrize(("eta", "gamma"), LAWS)
def test_no_exact_law_costs_more_than_is_charged(eta: float, gamma: float) -> None:
    for one, other in pairs(16):

        def trial(orders: Array, one: Array = one, other: Array = other) -> Array:
            return np.array([max(divergence(one, other, a), divergence(other, one, a)) for a in orders])

        orders = np.array([1.5, 2.0, 4.0, 16.0])
        charged = best_trial(trial, eta, gamma, orders, ORDERS)
        best = released(one, eta, gamma), released(other, eta, gamma)
        exact = [max(divergence(*best, a), divergence(*best[::-1], a)) for a in orders]
        assert np.all(exact <= charged * (1 + 1e-9))


def test_wrong_prices_are_caught() -> None:
    """One trial's price for the best of many, with or without their number: an exact law costs half as much again."""
    eta, gamma, order, epsilon = 0.0, 1e-4, 256.0, 0.5
    seen, better = 0.01, 0.01
    one = np.array([1 - seen - better, seen, better])
    other = np.array([0.0, seen * math.exp(-epsilon), better * math.exp(epsilon)])
    other[0] = 1 - other.sum()

    def trial(orders: Array) -> Array:
        return np.array([max(divergence(one, other, a), divergence(other, one, a)) for a in orders])

    exact = divergence(released(one, eta, gamma), released(other, eta, gamma), order)
    (single,) = trial(np.array([order]))
    (charged,) = best_trial(trial, eta, gamma, np.array([order]), ORDERS)
    assert exact > 1.5 * single, "the best of many would be free"
    assert exact > single + math.log(expected_trials(eta, gamma)) / (order - 1), "only their number would be paid"
    assert exact <= charged


def test_a_fixed_number_of_trials_has_no_such_price() -> None:
    """The best of exactly 200 trials, priced as if their number were drawn with that mean: the exact law costs more."""
    one, other = (np.array([1 - good, good]) for good in (0.5, 0.5 * math.exp(0.1)))
    number, order = 200, 32.0
    fixed = [np.array([law[0] ** number, 1 - law[0] ** number]) for law in (one, other)]

    def trial(orders: Array) -> Array:
        return np.array([max(divergence(one, other, a), divergence(other, one, a)) for a in orders])

    (charged,) = best_trial(trial, 0.0, gamma_for(float(number)), np.array([order]), ORDERS)
    assert divergence(fixed[0], fixed[1], order) > 10 * charged


@pytest.mark.parametrize("eta", [0.0, 1.0])
def test_another_accountant_agrees(eta: float) -> None:
    """Ours chooses among more orders, and is never dearer for it."""
    step = dp_event.PoissonSampledDpEvent(0.05, dp_event.GaussianDpEvent(4.0))
    whole = dp_event.RepeatAndSelectDpEvent(dp_event.SelfComposedDpEvent(step, 1200), 8.0, eta)
    theirs = RdpAccountant().compose(whole).get_epsilon(1e-5)
    ours = price([BestTrial(Repeated(Subsampled(0.05, Gaussian(4.0)), 1200), eta, gamma_for(8.0, eta))], 1e-5)
    assert ours.accountant == "rdp"
    assert theirs * 0.99 < ours.epsilon <= theirs


@pytest.mark.parametrize(("eta", "gamma"), LAWS)
def test_the_number_of_trials_has_its_law(eta: float, gamma: float) -> None:
    coins = (np.arange(20_000) + 0.5) / 20_000
    drawn = np.array([draw_trials(float(coin), eta, gamma) for coin in coins])
    assert drawn.min() == 1
    assert drawn.mean() == pytest.approx(expected_trials(eta, gamma), rel=0.01)
    for share in (0.3, 0.9):
        assert np.mean(share**drawn) == pytest.approx(float(generating(np.array(share), eta, gamma)), rel=1e-3)


def test_repeating_is_counting() -> None:
    step = Subsampled(0.1, Gaussian(2.0))
    assert price([Repeated(step, 50)], 1e-5) == price({step: 50}, 1e-5)
    assert price([Composed((Repeated(step, 20), Repeated(step, 30)))], 1e-5) == price({step: 50}, 1e-5)
    assert price([Repeated(step, 0)], 1e-5).epsilon == 0.0
    assert np.array_equal(replaced(Repeated(step, 5)), 5 * replaced(step))


def test_it_survives_json_and_costs_more_when_replaced() -> None:
    event = BestTrial(Composed((Repeated(Subsampled(0.1, Gaussian(4.0)), 50), Gaussian(10.0))), 0.0, 0.1)
    assert from_json(to_json(event)) == event
    assert price([event], 1e-5, adjacency="replace").epsilon > price([event], 1e-5).epsilon


def test_a_trial_with_a_cap_has_no_proof() -> None:
    """The cap takes a share of delta, which the curve of a trial does not know of."""
    attempt = SelectiveAttempt(0.1, 2.0, 0.05, 0.2, 0.8)
    assert np.isfinite(curve(BestTrial(SelectiveRelease(attempt), 0.0, 0.1), np.array([4.0]))).all()
    assert math.isinf(price([BestTrial(Composed((SelectiveRelease(attempt, 9),)), 0.0, 0.1)], 1e-5).epsilon)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(SettingError, match="eta"):
        BestTrial(Gaussian(1.0), -1.0, 0.5)
    with pytest.raises(SettingError, match="more than 1"):
        gamma_for(1.0)
