"""The price of a tally of events: one epsilon, by the tightest accountant that is valid for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from reticent.accounting.adjacency import Adjacency, check_adjacency
from reticent.accounting.coarse import coarsen
from reticent.accounting.events import Event, SelectiveRelease, Tally
from reticent.accounting.losses import pld as losses
from reticent.accounting.losses.gaussian import LARGEST
from reticent.accounting.renyi.conversions import to_epsilon
from reticent.accounting.renyi.curves import ORDERS, UNCOUNTED, counts_examples, curve, why_infinite
from reticent.accounting.renyi.replaced import replaced
from reticent.accounting.simplify import tally
from reticent.errors import SettingError, UnknownName

Accountant = Literal["best", "pld", "rdp"]
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Price:
    """What a tally costs at `delta`; `rdp` and `pld` are None where that accountant is not valid."""

    epsilon: float
    delta: float
    accountant: str
    order: float | None
    rdp: float | None
    pld: float | None
    why: str
    adjacency: Adjacency = "zero-out"


def price(
    events: Tally | Iterable[Event],
    delta: float,
    *,
    accountant: Accountant = "best",
    adjacency: Adjacency = "zero-out",
) -> Price:
    """What the events cost together at `delta`, if all of them were fixed beforehand.

    "best" is the smaller epsilon of loss distributions (PLD) and Renyi divergences (RDP). Where parameters are chosen
    during a run neither holds for the events it came to: such a run passes a filter, and costs the filter's budget.
    Zero-out and add-or-remove have one price, and it depends on the run which of them it is for; to replace an example
    costs more, by Renyi divergences alone.

    >>> from reticent.accounting.events import Gaussian, Subsampled
    >>> cost = price({Subsampled(0.01, Gaussian(1.0)): 1000}, 1e-5)
    >>> round(cost.epsilon, 2), cost.accountant
    (1.83, 'pld')
    """
    check_accountant(accountant)
    check_delta(delta)
    exchanged = check_adjacency(adjacency) == "replace"
    counted = tally(events)
    if adjacency == "add-or-remove" and any(map(counts_examples, counted)):
        return Price(math.inf, delta, "none", None, None, None, UNCOUNTED, adjacency)
    return replace(_price(frozenset(counted.items()), delta, accountant, exchanged), adjacency=adjacency)


def epsilon(
    events: Tally | Iterable[Event],
    delta: float,
    *,
    accountant: Accountant = "best",
    adjacency: Adjacency = "zero-out",
) -> float:
    """The epsilon of the events at `delta`.

    >>> from reticent.accounting.events import Gaussian
    >>> round(epsilon([Gaussian(2.0)], 1e-5), 3)
    1.993
    """
    return price(events, delta, accountant=accountant, adjacency=adjacency).epsilon


def check_accountant(accountant: str) -> Accountant:
    """The accountant of this name, or an error that tells which there are."""
    for known in get_args(Accountant):
        if accountant == known:
            return known  # type: ignore[no-any-return]
    raise UnknownName("accountant", accountant, get_args(Accountant))


def check_delta(delta: float) -> None:
    """Refuse a delta that is not a small probability."""
    if not 0 < delta < 1:
        raise SettingError(f"delta is {delta}: it must lie between 0 and 1, well below one over the number of examples")


def total_curve(events: Tally, orders: Array = ORDERS, *, exchanged: bool = False) -> Array:
    """The Renyi curve of a whole tally: divergences of released events add up.

    >>> from reticent.accounting.events import Gaussian
    >>> total_curve({Gaussian(2.0): 4}, np.array([2.0, 8.0]))
    array([1., 4.])
    """
    total = np.zeros(len(orders))
    for event, count in events.items():
        total += count * (replaced if exchanged else curve)(event, orders)
    return total


@lru_cache(maxsize=4096)
def _price(items: frozenset[tuple[Event, int]], delta: float, accountant: Accountant, exchanged: bool) -> Price:
    events = dict(sorted(items, key=repr))  # rounding must not depend on the order of a set
    if not events:
        return Price(0.0, delta, "none needed", None, 0.0, 0.0, "nothing was released")
    if exchanged and accountant == "pld":
        raise SettingError("replacing one example is priced by Renyi divergences: use accountant='rdp' or 'best'")
    renyi, order = renyi_epsilon(events, delta, exchanged=exchanged)
    if math.isinf(renyi):
        why = next(filter(None, map(why_infinite, events)), "the cap on hidden attempts is too low for this delta")
        return Price(math.inf, delta, "none", None, None, None, why)
    loss = None if accountant == "rdp" or exchanged else loss_epsilon(events, delta)
    return _choose(renyi, order, loss, delta, accountant)


def _choose(renyi: float, order: float | None, loss: float | None, delta: float, accountant: Accountant) -> Price:
    if accountant == "pld" and loss is None:
        raise SettingError("no loss distribution is known for these events: use accountant='rdp' or 'best'")
    if loss is not None and (accountant == "pld" or loss <= renyi):
        return Price(loss, delta, "pld", None, renyi, loss, "loss distribution of the whole run")
    return Price(renyi, delta, "rdp", order, renyi, loss, f"Renyi divergence of order {order:g}")


Found = tuple[float, float | None]
"""An epsilon and the order that proves it."""

MANY_CURVES, MANY_LAWS, CELLS = 1000, 256, 128
"""Above so many distinct events noises are rounded down: to a thousand values for curves, 128 for distributions, each
of which takes a transform. For noises from 4 down to 2.5 that raises epsilon by 0.03 % and 0.2 %; twice the cells raise
it half as much."""


def renyi_epsilon(events: Tally, delta: float, orders: Array = ORDERS, *, exchanged: bool = False) -> Found:
    """Epsilon by the Renyi curve of the whole tally, and its order."""
    few = events if len(events) <= MANY_CURVES else coarsen(events, MANY_CURVES)
    total = total_curve(few, orders, exchanged=exchanged)
    cut = capped_mass(events)
    if not cut:
        return to_epsilon(orders, total, delta)
    return _with_cap(lambda left: to_epsilon(orders, total, left), delta, cut)


def loss_epsilon(events: Tally, delta: float, grid: losses.Grid | None = None) -> float | None:
    """Epsilon by the loss distribution of the whole tally, or None where an event has none."""
    if not all(losses.has_pld(event) for event in events):
        return None
    few = events if len(events) <= MANY_LAWS else coarsen(events, CELLS)
    return max(law.epsilon(delta) for law in losses.distribution(few, grid))


def capped_mass(events: Tally) -> float:
    """The chance that some group of hidden attempts runs into its cap: how far the run is from the accounted one."""
    return sum(
        count * (1 - event.attempt.accept_low) ** event.cap
        for event, count in events.items()
        if isinstance(event, SelectiveRelease) and event.cap is not None
    )


CREEP = 1e-6
"""By which share of itself a guess of epsilon goes beyond what it was found to need."""


def _with_cap(convert: Callable[[float], Found], delta: float, cut: float) -> Found:
    """Epsilon when the cap takes (1 + exp(epsilon)) x cut of delta: each of the two datasets has its share."""
    guess = 0.0
    while True:
        left = delta - (1 + math.exp(guess)) * cut if guess < LARGEST else 0.0
        if left <= 0:
            return math.inf, None
        needed, order = convert(left)
        if needed <= guess:
            return guess, order
        guess = needed * (1 + CREEP) + 1e-9  # a little above, so that it ends: epsilon is too large by as much at most
