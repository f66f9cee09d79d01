"""The guarantee of a named method from its public numbers alone, before any run: what `reticent account` answers."""

from __future__ import annotations

import math
from typing import Any

from reticent.accounting.budget import Budget, ConcentratedFilter
from reticent.accounting.charging import CHARGED, charging, whole
from reticent.accounting.claims import claimed
from reticent.accounting.guarantee import Guarantee
from reticent.accounting.numbers import Numbers, poisson
from reticent.accounting.pricing import price
from reticent.accounting.renyi.dpis import ImportancePlan
from reticent.accounting.selective.corners import noisy_test
from reticent.errors import SettingError, UnknownName

NO_PROOF = {
    "pd_sgd": "plausible deniability is not differential privacy: see docs/accounting.md",
    "advreg": "adversarial regularisation is an empirical defence",
    "selena": "split learning with distillation is an empirical defence",
}
METHODS = sorted([*CHARGED, *NO_PROOF, "dpis", "dpagd"])


def quote(method: str, numbers: Numbers) -> Guarantee:
    """What is proved about a method run with these numbers, and what its paper claims beside it.

    >>> print(quote("dpsgd", Numbers(sample_rate=0.01, noise_multiplier=1.0, steps=1000)))
    (1.83, 1e-05)-DP, add or remove one example, proved (PLD)
    """
    if method not in METHODS:
        raise UnknownName("method", method, METHODS)
    if method in NO_PROOF:
        return Guarantee("none", math.inf, numbers.delta, why=NO_PROOF[method])
    if method == "dpis":
        return _dpis(method, numbers)
    if method == "dpagd":
        (epsilon,) = numbers.need(method, "epsilon")
        allowance = ConcentratedFilter(epsilon, numbers.delta)
        return Guarantee.of(allowance.price(numbers.delta, numbers.accountant), route="filter")
    charge = charging(method, numbers)
    cost = price(whole(method, numbers), numbers.delta, accountant=numbers.accountant)
    claim = _claim(method, numbers)
    return Guarantee.of(cost, route=charge.route, assumptions=charge.assumptions, as_claimed=claim)


def _claim(method: str, numbers: Numbers) -> dict[str, Any] | None:
    """What the paper says about the same run; None where it says what everybody does."""
    rate, noise = numbers.need(method, "sample_rate", "noise_multiplier")
    step, delta, orders = poisson(rate, noise), numbers.delta, numbers.orders
    if method in ("dpsign_sgd", "dpsign_adam"):
        (steps,) = numbers.need(method, "steps")
        return claimed.dpsign(step, steps, delta, orders=orders).to_json()
    if method == "sa_dpsgd":
        kept = numbers.accepted or numbers.attempts or 0
        return claimed.sa_dpsgd(step, kept, delta, orders=orders).to_json() | {"accepted": kept}
    if method == "dpsur":
        test_rate, test_noise = numbers.need(method, "validation_rate", "validation_noise")
        test = poisson(test_rate, test_noise)
        # the paper charges accepted updates only: where their number is not given, as many as can be expected at best
        share = noisy_test(rate, noise, test_rate, test_noise, numbers.beta).accept_high
        kept = numbers.accepted or round((numbers.attempts or 0) * share)
        claim = claimed.dpsur(step, test, kept, delta, orders=orders, statistics=numbers.statistics())
        return claim.to_json() | {"accepted": kept}
    return None


def _dpis(method: str, numbers: Numbers) -> Guarantee:
    plan, kappas = importance_plan(method, numbers)
    noises = claimed.dpis_schedule(
        plan.data_size,
        plan.batch_size,
        plan.budget.epsilon,
        numbers.delta,
        kappas,
        phase=numbers.phase,
        size_noise=numbers.size_noise,
    )
    claim = {"epsilon": plan.budget.epsilon, "noise": noises, "refuted": False, "text": claimed.REPAIRED}
    cost = plan.filter().price(numbers.delta, numbers.accountant)
    fixed = f"order {plan.order} is fixed before the run; the noise of an epoch follows from what was released"
    return Guarantee.of(cost, route="filter", assumptions=(fixed,), as_claimed=claim)


def importance_plan(method: str, numbers: Numbers) -> tuple[ImportancePlan, tuple[float, ...]]:
    """The plan of DPIS and the kappa of every epoch.

    >>> plan, kappas = importance_plan("dpis", Numbers(data_size=6000, batch_size=600, epochs=5, epsilon=2.0))
    >>> plan.order, kappas
    (9, (1.0, 1.0, 1.0, 1.0, 1.0))
    """
    size, batch, epochs, epsilon = numbers.need(method, "data_size", "batch_size", "epochs", "epsilon")
    budget = Budget(epsilon, numbers.delta)
    plan = ImportancePlan(size, batch, epochs, budget, phase=numbers.phase, size_noise=numbers.size_noise)
    kappas = numbers.kappa or (1.0,)
    if len(kappas) not in (1, epochs):
        raise SettingError(f"--kappa has {len(kappas)} values: give one, or one for each of the {epochs} epochs")
    return plan, kappas * epochs if len(kappas) == 1 else kappas
