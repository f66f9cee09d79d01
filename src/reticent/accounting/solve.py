"""What a budget affords a named method: its noise, its rounds or its rate, whichever is not given."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from reticent.accounting.budget import Budget
from reticent.accounting.calibrate import largest, least_noise, within
from reticent.accounting.charging import charging, whole
from reticent.accounting.guarantee import Guarantee
from reticent.accounting.numbers import Numbers
from reticent.accounting.quote import NO_PROOF, quote
from reticent.accounting.search import geometric_search
from reticent.errors import SettingError


def solve(method: str, numbers: Numbers) -> tuple[str, Numbers, Guarantee]:
    """The name of the missing number, the numbers with it filled in, and the guarantee, within `numbers.epsilon`.

    >>> name, found, guarantee = solve("dpsgd", Numbers(sample_rate=0.01, steps=1000, epsilon=2.0))
    >>> name, round(found.noise_multiplier, 2), guarantee.epsilon <= 2.0
    ('noise_multiplier', 0.96, True)
    """
    if method in NO_PROOF:
        raise SettingError(f"{method} has no epsilon to plan for: {NO_PROOF[method]}")
    numbers = numbers.completed()
    (epsilon,) = numbers.need(method, "epsilon")
    budget = Budget(epsilon, numbers.delta, numbers.accountant)
    name = _missing(method, numbers)
    found = _with(numbers, name, _fill(method, numbers, name, budget))
    return name, found, quote(method, found)


def _missing(method: str, numbers: Numbers) -> str:
    """The one number that is to be found."""
    filled = replace(numbers, sample_rate=numbers.sample_rate or 1.0, noise_multiplier=numbers.noise_multiplier or 1.0)
    counted = charging(method, filled).counted
    missing = [name for name in ("noise_multiplier", counted, "sample_rate") if getattr(numbers, name) is None]
    if len(missing) != 1:
        flags = ", ".join("--" + name.replace("_", "-") for name in ("noise_multiplier", counted, "sample_rate"))
        raise SettingError(f"give all but one of {flags} (a rate follows from --batch-size and --data-size)")
    return missing[0]


def _fill(method: str, numbers: Numbers, name: str, budget: Budget) -> float:
    """The value of the missing number that just fits the budget."""
    if name == "noise_multiplier":
        return least_noise(lambda noise: whole(method, replace(numbers, noise_multiplier=noise)), budget)

    def fits(value: float) -> bool:
        return within(whole(method, _with(numbers, name, value)), budget)

    if name == "sample_rate":
        if fits(1.0):
            return 1.0
        return 1 / geometric_search(lambda gap: fits(1 / gap), 1.0, 1e8, 1 + 1e-4)
    count = largest(fits)
    if count == 0:
        raise SettingError(
            f"not even one round fits epsilon {budget.epsilon:g} at delta {budget.delta:g}: use more noise or a lower "
            "rate"
        )
    return count


def _with(numbers: Numbers, name: str, value: Any) -> Numbers:
    return replace(numbers, **{name: value})
