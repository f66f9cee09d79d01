"""Calibration: the noise or the rounds that a budget affords, never above it."""

from __future__ import annotations

from collections.abc import Callable

from reticent.accounting.adjacency import Adjacency
from reticent.accounting.budget import Budget
from reticent.accounting.events import Gaussian, Subsampled, Tally
from reticent.accounting.pricing import Accountant
from reticent.accounting.pricing import epsilon as price_of
from reticent.accounting.search import least_affordable
from reticent.errors import SettingError

A_LITTLE = 1 + 1e-4
"""By which ratio a noise that is not quite enough is raised until it is: epsilon is used up to 0.1 % or so."""

ENDLESS = 10**12
"""Rounds at which the search for the most that a budget affords gives up."""


def noise_multiplier(
    epsilon: float,
    delta: float,
    sample_rate: float,
    steps: int,
    accountant: Accountant = "best",
    adjacency: Adjacency = "zero-out",
) -> float:
    """The least noise multiplier whose price stays within (epsilon, delta).

    >>> noise = noise_multiplier(2.0, 1e-5, sample_rate=0.01, steps=1000)
    >>> 1.99 < price_of(steps_of(0.01, noise, 1000), 1e-5) <= 2.0
    True
    """
    _check_rate(sample_rate)
    budget = Budget(epsilon, delta, accountant, adjacency)
    return least_noise(lambda noise: steps_of(sample_rate, noise, steps), budget)


def least_noise(tally_of: Callable[[float], Tally], budget: Budget) -> float:
    """The least noise whose tally is within the budget; the tally must cost less the more noise there is.

    >>> 6.4 < least_noise(lambda noise: {Gaussian(noise): 3}, Budget(1.0, 1e-5)) < 6.6
    True
    """
    noise = least_affordable(tally_of, budget)
    while not within(tally_of(noise), budget):
        noise *= A_LITTLE
    return noise


def rounds(tally_of: Callable[[int], Tally], budget: Budget, most: int | None = None) -> int:
    """The most rounds whose tally is within the budget (0: not even one); the tally grows with the rounds.

    >>> rounds(lambda count: {Gaussian(10.0): count}, Budget(1.0, 1e-5))
    7
    """
    return largest(lambda count: within(tally_of(count), budget), most)


def within(events: Tally, budget: Budget) -> bool:
    """Whether a budget covers a whole tally.

    >>> within({Gaussian(10.0): 7}, Budget(1.0, 1e-5))
    True
    """
    cost = price_of(events, budget.delta, accountant=budget.accountant, adjacency=budget.adjacency)
    return cost <= budget.epsilon


def largest(affords: Callable[[int], bool], most: int | None = None) -> int:
    """The largest count that is afforded, if every smaller one is too.

    >>> largest(lambda count: count**2 <= 50)
    7
    """
    low, high = 0, 1
    while (most is None or high <= most) and affords(high):
        low, high = high, 2 * high
        if high > ENDLESS:
            raise SettingError("this budget affords more rounds than anybody runs: name the most you want")
    high = high if most is None else min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if affords(middle) else (low, middle)
    return low


def steps_of(sample_rate: float, noise_multiplier: float, steps: int) -> Tally:
    """The tally of so many plain private steps.

    >>> steps_of(0.1, 1.0, 5)
    {Subsampled(rate=0.1, inner=Gaussian(noise_multiplier=1.0)): 5}
    """
    return {Subsampled(sample_rate, Gaussian(noise_multiplier)): steps}


def _check_rate(rate: float) -> None:
    if not 0 < rate <= 1:
        raise SettingError(
            f"the sample rate is {rate}: it is expected batch size / number of examples, above 0, at most 1"
        )
