"""The price of a tally of events: one epsilon, by the tightest accountant that is valid for it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from reticent.accounting import pld as losses
from reticent.accounting.conversions import to_epsilon
from reticent.accounting.events import Composed, Event
from reticent.accounting.rdp import ORDERS, curve, why_infinite
from reticent.errors import SettingError, UnknownName

Tally = Mapping[Event, int]
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


def tally(events: Tally | Iterable[Event]) -> dict[Event, int]:
    """Events with how often each happened; compositions are taken apart, equal events merged.

    >>> from reticent.accounting.events import Gaussian
    >>> tally([Gaussian(1.0), Composed((Gaussian(1.0), Gaussian(2.0)))])
    {Gaussian(noise_multiplier=1.0): 2, Gaussian(noise_multiplier=2.0): 1}
    """
    counts: Counter[Event] = Counter()
    for event, count in events.items() if isinstance(events, Mapping) else Counter(events).items():
        if count < 0:
            raise SettingError(f"{event} is counted {count} times: counts are 0 or more")
        if isinstance(event, Composed):
            for part, times in tally(event.parts).items():
                counts[part] += times * count
        elif count:
            counts[event] += count
    return dict(counts)


def price(
    events: Tally | Iterable[Event], delta: float, *, accountant: Accountant = "best", adaptive: bool = False
) -> Price:
    """What the events cost together at `delta`; `adaptive` says their parameters were chosen during the run.

    "best" is the smallest valid epsilon: loss distributions (PLD) or Renyi (RDP), and only RDP where adaptive.

    >>> from reticent.accounting.events import Gaussian, Subsampled
    >>> cost = price({Subsampled(0.01, Gaussian(1.0)): 1000}, 1e-5)
    >>> round(cost.epsilon, 2), cost.accountant
    (1.83, 'pld')
    """
    check_accountant(accountant)
    check_delta(delta)
    if adaptive and accountant == "pld":
        raise SettingError("PLD is not valid where parameters were chosen during the run: use accountant='rdp'")
    return _price(frozenset(tally(events).items()), delta, accountant, adaptive)


def epsilon(
    events: Tally | Iterable[Event], delta: float, *, accountant: Accountant = "best", adaptive: bool = False
) -> float:
    """The epsilon of the events at `delta`.

    >>> from reticent.accounting.events import Gaussian
    >>> round(epsilon([Gaussian(2.0)], 1e-5), 3)
    1.993
    """
    return price(events, delta, accountant=accountant, adaptive=adaptive).epsilon


def check_accountant(accountant: str) -> None:
    """Refuse an accountant that does not exist."""
    if accountant not in get_args(Accountant):
        raise UnknownName("accountant", accountant, get_args(Accountant))


def check_delta(delta: float) -> None:
    """Refuse a delta that is not a small probability."""
    if not 0 < delta < 1:
        raise SettingError(f"delta is {delta}: it must lie between 0 and 1, well below one over the number of examples")


def total_curve(events: Tally, orders: Array = ORDERS) -> Array:
    """The Renyi curve of a whole tally: divergences of released events add up."""
    return np.asarray(sum((count * curve(event, orders) for event, count in events.items()), np.zeros(len(orders))))


@lru_cache(maxsize=4096)
def _price(items: frozenset[tuple[Event, int]], delta: float, accountant: Accountant, adaptive: bool) -> Price:
    events = dict(sorted(items, key=repr))  # rounding must not depend on the order of a set
    if not events:
        return Price(0.0, delta, "none needed", None, 0.0, 0.0, "nothing was released")
    if why := next(filter(None, map(why_infinite, events)), None):
        return Price(math.inf, delta, "none", None, None, None, why)
    renyi, order = to_epsilon(ORDERS, total_curve(events), delta)
    loss = None if adaptive or accountant == "rdp" else _loss_epsilon(events, delta)
    return _choose(renyi, order, loss, delta, accountant)


def _loss_epsilon(events: Tally, delta: float) -> float | None:
    if not all(losses.has_pld(event) for event in events):
        return None
    return max(law.epsilon(delta) for law in losses.distribution(events))


def quick_epsilon(events: Tally, delta: float, accountant: Accountant) -> float:
    """An epsilon at least as large as the price, by one accountant only: for searches that ask often."""
    if accountant != "rdp" and events:
        loss = _loss_epsilon(tally(events), delta)
        if loss is not None:
            return loss
    return epsilon(events, delta, accountant="rdp")


def _choose(renyi: float, order: float | None, loss: float | None, delta: float, accountant: Accountant) -> Price:
    if accountant == "pld":
        if loss is None:
            raise SettingError("no loss distribution is known for these events: use accountant='rdp' or 'best'")
        return Price(loss, delta, "pld", None, renyi, loss, "loss distribution of the whole run")
    if loss is not None and loss <= renyi:
        return Price(loss, delta, "pld", None, renyi, loss, "loss distribution of the whole run")
    return Price(renyi, delta, "rdp", order, renyi, loss, f"Renyi divergence of order {order:g}")
