"""The search for the least noise a budget affords: roughly by plain curves, then on a coarse grid, then finely."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from reticent.accounting.budget import Budget
from reticent.accounting.events import (
    AnnealedRelease,
    BinInTurn,
    Event,
    FixedSize,
    Gaussian,
    SelectiveAttempt,
    SelectiveRelease,
    Subsampled,
    Tally,
    Truncated,
)
from reticent.accounting.losses.pld import COARSE, Grid, has_pld
from reticent.accounting.pricing import epsilon, loss_epsilon, renyi_epsilon
from reticent.accounting.renyi.curves import KNOTS, ORDERS
from reticent.accounting.simplify import tally
from reticent.errors import SettingError

LEAST_NOISE, MOST_NOISE = 1e-2, 1e7
"""Noise below the first hides nothing (a step has an epsilon in the thousands), above the second all of it."""

ROUGHLY = 1.05
"""The ratio within which the first search, by curves of plain steps, brackets the noise."""

STAGES: tuple[tuple[Grid | None, float, float], ...] = ((COARSE, 0.1, 1e-3), (None, 0.01, 5e-5))
"""Grid, first stride and precision, in log noise, of the two searches by the real accountant. None of these numbers can
make a noise too small: calibrate.py raises what is found until its price is within the budget."""

AROUND = 7
"""Knots round the best order that a search by a costly curve looks at: the best order hardly depends on the noise."""

Cost = Callable[[Tally], float]


def least_affordable(tally_of: Callable[[float], Tally], budget: Budget) -> float:
    """The least noise whose tally is within the budget, up to 1e-4 of itself."""
    rough = geometric_search(lambda noise: _roughly(tally_of(noise), budget), LEAST_NOISE, MOST_NOISE, ROUGHLY)
    log_noise = math.log(rough)
    for grid, stride, precision in STAGES:
        stage = Stage(_cost(tally_of(math.exp(log_noise)), budget, grid), stride, precision)
        log_noise = _root(tally_of, stage, log_noise, budget)
    return math.exp(log_noise)


class Stage(NamedTuple):
    """A cost function, how far to look round the last answer at first, and how closely in the end."""

    cost: Cost
    stride: float
    precision: float


def _cost(example: Tally, budget: Budget, grid: Grid | None) -> Cost:
    """A bound on the price of tallies like the example, by one accountant: losses on a grid, or a few orders."""
    simple, exchanged = tally(example), budget.adjacency == "replace"
    if budget.accountant != "rdp" and not exchanged and all(has_pld(event) for event in simple):
        return _by_loss(budget.delta, grid)
    costly = any(isinstance(event, COSTLY) for event in simple)
    orders = _few_orders(simple, budget.delta, exchanged=exchanged) if costly else ORDERS
    return lambda events: renyi_epsilon(tally(events), budget.delta, orders, exchanged=exchanged)[0]


def _by_loss(delta: float, grid: Grid | None) -> Cost:
    def cost(events: Tally) -> float:
        found = loss_epsilon(tally(events), delta, grid)
        return math.inf if found is None else found

    return cost


COSTLY = (SelectiveAttempt, SelectiveRelease, AnnealedRelease)


def _few_orders(example: Tally, delta: float, *, exchanged: bool) -> NDArray[np.float64]:
    """The knots round the best order: at a given epsilon it hardly depends on the noise."""
    _, order = renyi_epsilon(example, delta, exchanged=exchanged)
    place = int(np.argmin(np.abs(KNOTS - (order or 4.0))))
    start = min(max(place - AROUND // 2, 0), len(KNOTS) - AROUND)
    return KNOTS[start : start + AROUND]


def _roughly(events: Tally, budget: Budget) -> bool:
    """A cheap first opinion: every selective attempt or release, and every other draw, counted as a plain step."""
    plain: Counter[Event] = Counter()
    for event, count in events.items():
        match event:
            case SelectiveAttempt(rate, noise) | SelectiveRelease(SelectiveAttempt(rate, noise)):
                plain[Subsampled(rate, Gaussian(noise))] += count
            case AnnealedRelease(rate, noise) | Truncated(rate, _, _, Gaussian(noise)):
                plain[Subsampled(rate, Gaussian(noise))] += count
            case FixedSize(batch, size, Gaussian(noise)):
                plain[Subsampled(batch / size, Gaussian(noise / 2))] += count
            case BinInTurn(_, turns, inner):
                plain[Subsampled(1 / turns, inner)] += count
            case _:
                plain[event] += count
    return epsilon(plain, budget.delta, accountant="rdp", adjacency=budget.adjacency) <= budget.epsilon


def _root(tally_of: Callable[[float], Tally], stage: Stage, guess: float, budget: Budget) -> float:
    """The log noise at which the cost falls to the budget."""

    @cache
    def excess(log_noise: float) -> float:
        share = stage.cost(tally_of(math.exp(log_noise))) / budget.epsilon
        return math.log(min(max(share, 1e-9), 1e9))  # 0 and infinity have no logarithm, and need none to be bracketed

    low, high, stride = guess, guess, stage.stride
    while excess(high) > 0:
        low, high, stride = high, high + stride, 2 * stride
        if high > math.log(MOST_NOISE) + 1:
            raise SettingError(
                f"no noise reaches epsilon {budget.epsilon:g}: what the plan releases besides costs more than that. "
                "Give that more noise (validation_noise or less influence, statistics_noise), or take fewer epochs"
            )
    while low == high or excess(low) <= 0:
        low, high, stride = low - stride, low, 2 * stride
        if low < math.log(LEAST_NOISE):
            return high
    return float(brentq(excess, low, high, xtol=stage.precision))


def geometric_search(affords: Callable[[float], bool], low: float, high: float, ratio: float) -> float:
    """The affordable end of a bracket of this ratio round the place where `affords` turns true.

    >>> 7 <= geometric_search(lambda value: value >= 7, 1.0, 100.0, 1.01) < 7.1
    True
    """
    while high / low > ratio:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if affords(middle) else (middle, high)
    return high
