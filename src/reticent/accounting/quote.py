"""The guarantee of a named method from its public numbers alone, before any run: what `reticent account` answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from reticent.accounting import claimed
from reticent.accounting.budget import Budget, ConcentratedFilter
from reticent.accounting.dpis import ImportancePlan
from reticent.accounting.events import (
    AnnealedRelease,
    Composed,
    Event,
    Gaussian,
    SelectiveRelease,
    Subsampled,
    Tally,
)
from reticent.accounting.guarantee import Guarantee
from reticent.accounting.price import Accountant, price
from reticent.accounting.selective import noisy_test
from reticent.accounting.simplify import tally
from reticent.errors import SettingError, UnknownName


@dataclass(frozen=True)
class Numbers:
    """Public numbers of a run; None where a method does not need them."""

    delta: float = 1e-5
    accountant: Accountant = "best"
    orders: claimed.Orders = "paper"
    sample_rate: float | None = None
    noise_multiplier: float | None = None
    steps: int | None = None
    validation_rate: float | None = None
    validation_noise: float | None = None
    beta: float = -1.0
    attempts: int | None = None
    accepted: int | None = None
    route: str | None = None
    cap: int | None = None
    max_rejections: int | None = None
    data_size: int | None = None
    batch_size: float | None = None
    epochs: int | None = None
    epsilon: float | None = None
    phase: float = 0.8
    kappa: tuple[float, ...] = ()
    size_noise: float | None = None
    statistics_noise: float | None = None
    noises: tuple[float, ...] = ()
    """The noise multiplier of each epoch, for methods that let it decay."""

    def need(self, method: str, *names: str) -> tuple[Any, ...]:
        """The values of these fields, or an error that says which flag is missing."""
        missing = [name for name in names if getattr(self, name) is None]
        if missing:
            flags = ", ".join("--" + name.replace("_", "-") for name in missing)
            raise SettingError(f"the account of {method} needs {flags}")
        return tuple(getattr(self, name) for name in names)

    def step(self, method: str) -> Event:
        """One release of a gradient on a Poisson draw."""
        rate, noise = self.need(method, "sample_rate", "noise_multiplier")
        return poisson(rate, noise)

    def statistics(self) -> tuple[Event, ...]:
        """The two releases (means and mean squares) that normalise features, if there are any."""
        return () if self.statistics_noise is None else (Gaussian(self.statistics_noise),) * 2


def poisson(rate: float, noise_multiplier: float) -> Event:
    """A Gaussian release on a Poisson draw, its numbers checked.

    >>> poisson(0.1, 1.0)
    Subsampled(rate=0.1, inner=Gaussian(noise_multiplier=1.0))
    """
    if not 0 < rate <= 1:
        raise SettingError(f"a rate is {rate}: it is expected batch size / number of examples, above 0, at most 1")
    if not noise_multiplier >= 0:
        raise SettingError(f"a noise multiplier is {noise_multiplier}: it must be 0 or more")
    return Subsampled(rate, Gaussian(noise_multiplier))


def quote(method: str, numbers: Numbers) -> Guarantee:
    """What is proved about a method run with these numbers, and what its paper claims beside it.

    >>> print(quote("dpsgd", Numbers(sample_rate=0.01, noise_multiplier=1.0, steps=1000)))
    (1.83, 1e-05)-DP, add or remove one example, proved (PLD)
    """
    if method not in QUOTES:
        raise UnknownName("method", method, QUOTES)
    return QUOTES[method](method, numbers)


def _plain(method: str, numbers: Numbers) -> Guarantee:
    """Every step charged: DP-SGD and all that only changes what happens after the release."""
    (steps,) = numbers.need(method, "steps")
    step = numbers.step(method)
    found = _proved({step: steps}, numbers, route="every step")
    if not method.startswith("dpsign"):
        return found
    claim = claimed.dpsign(step, steps, numbers.delta, orders=numbers.orders)
    return replace(found, as_claimed=claim.to_json())


def _decay(method: str, numbers: Numbers) -> Guarantee:
    rate, steps = numbers.need(method, "sample_rate", "steps")
    if not numbers.noises:
        raise SettingError(f"the account of {method} needs --decay and --epochs")
    share, rest = divmod(steps, len(numbers.noises))
    events = [(poisson(rate, noise), share + (epoch < rest)) for epoch, noise in enumerate(numbers.noises)]
    return _proved(_summed(events), numbers, route="every step, noises fixed in advance")


def _dpsur(method: str, numbers: Numbers) -> Guarantee:
    rate, noise, test_rate, test_noise = numbers.need(
        method, "sample_rate", "noise_multiplier", "validation_rate", "validation_noise"
    )
    step, test = poisson(rate, noise), poisson(test_rate, test_noise)
    attempt = noisy_test(rate, noise, test_rate, test_noise, numbers.beta)
    routes: dict[str, tuple[str, Event, tuple[str, ...]]] = {
        "S": ("attempts", attempt, ROUTE_S),
        "C": ("accepted", SelectiveRelease(attempt, numbers.cap), ROUTE_C),
        "F": ("attempts", Composed((step, test)), ROUTE_F),
    }
    route = numbers.route or "S"
    if route not in routes:
        raise UnknownName("route", route, routes)
    name, event, assumptions = routes[route]
    (count,) = numbers.need(method, name)
    found = _proved({event: count}, numbers, route=route, assumptions=assumptions)
    # the paper charges accepted updates only: where their number is not given, as many as can be expected at best
    kept = numbers.accepted or round(count * attempt.accept_high)
    claim = claimed.dpsur(step, test, kept, numbers.delta, orders=numbers.orders, statistics=numbers.statistics())
    return replace(found, as_claimed=claim.to_json() | {"accepted": kept})


def _sa_dpsgd(method: str, numbers: Numbers) -> Guarantee:
    rate, noise = numbers.need(method, "sample_rate", "noise_multiplier")
    step = poisson(rate, noise)
    if numbers.route == "C":
        count, rejections = numbers.need(method, "accepted", "max_rejections")
        release = AnnealedRelease(rate, noise, rejections)
        found = _proved({release: count}, numbers, route="C", assumptions=(PUBLIC, *ROUTE_C))
    elif numbers.validation_noise is not None:
        count, test_rate = numbers.need(method, "attempts", "validation_rate")
        both = Composed((step, poisson(test_rate, numbers.validation_noise)))
        found = _proved({both: count}, numbers, route="every attempt and its test", assumptions=ROUTE_S[:1])
    else:
        (count,) = numbers.need(method, "attempts")
        found = _proved({step: count}, numbers, route="every attempt", assumptions=(PUBLIC, ROUTE_S[0]))
    kept = numbers.accepted or count
    claim = claimed.sa_dpsgd(step, kept, numbers.delta, orders=numbers.orders)
    return replace(found, as_claimed=claim.to_json() | {"accepted": kept})


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
    """The plan of DPIS and the kappa of every epoch."""
    size, batch, epochs, epsilon = numbers.need(method, "data_size", "batch_size", "epochs", "epsilon")
    budget = Budget(epsilon, numbers.delta)
    plan = ImportancePlan(size, batch, epochs, budget, phase=numbers.phase, size_noise=numbers.size_noise)
    kappas = numbers.kappa or (1.0,)
    if len(kappas) not in (1, epochs):
        raise SettingError(f"--kappa has {len(kappas)} values: give one, or one for each of the {epochs} epochs")
    return plan, kappas * epochs if len(kappas) == 1 else kappas


def _dpagd(method: str, numbers: Numbers) -> Guarantee:
    (epsilon,) = numbers.need(method, "epsilon")
    allowance = ConcentratedFilter(epsilon, numbers.delta)
    return Guarantee.of(allowance.price(numbers.delta, numbers.accountant), route="filter")


def _none(method: str, numbers: Numbers) -> Guarantee:
    return Guarantee("none", math.inf, numbers.delta, why=NO_PROOF[method])


def _proved(events: Tally, numbers: Numbers, **rest: Any) -> Guarantee:
    whole = _summed([*events.items(), *((event, 1) for event in numbers.statistics())])
    return Guarantee.of(price(whole, numbers.delta, accountant=numbers.accountant), **rest)


def _summed(events: list[tuple[Event, int]]) -> Tally:
    total: dict[Event, int] = {}
    for event, count in events:
        total[event] = total.get(event, 0) + count
    return tally(total)


PUBLIC = "the hold-out set is public"
ROUTE_S = (
    "the number of attempts was fixed before the run",
    "a rejected candidate stays hidden and everything it changed is restored",
)
ROUTE_C = (
    "the number of accepted updates was fixed before the run",
    "how many attempts there were, their timing and their logs stay hidden",
)
ROUTE_F = ("the number of attempts was fixed before the run", "every candidate and every test may be seen")
NO_PROOF = {
    "pd_sgd": "plausible deniability is not differential privacy: see docs/accounting.md",
    "advreg": "adversarial regularisation is an empirical defence",
    "selena": "split learning with distillation is an empirical defence",
}
QUOTES: dict[str, Callable[[str, Numbers], Guarantee]] = {
    **dict.fromkeys(("dpsgd", "dpadam", "auto_s", "dpsign_sgd", "dpsign_adam"), _plain),
    "noise_decay": _decay,
    "dpsur": _dpsur,
    "sa_dpsgd": _sa_dpsgd,
    "dpis": _dpis,
    "dpagd": _dpagd,
    **dict.fromkeys(NO_PROOF, _none),
}
