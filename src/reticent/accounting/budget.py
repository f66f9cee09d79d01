"""Budgets, and allowances: what the vault asks before every release."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from reticent.accounting.adjacency import Adjacency, check_adjacency
from reticent.accounting.events import Event, SelectiveRelease, Tally
from reticent.accounting.pricing import Accountant, Price, check_accountant, check_delta, price
from reticent.accounting.renyi.conversions import overhead
from reticent.accounting.renyi.curves import ORDERS, counts_examples, curve
from reticent.accounting.renyi.replaced import replaced
from reticent.errors import BudgetSpent, SettingError


@dataclass(frozen=True)
class Budget:
    """How much privacy a run may spend.

    >>> Budget(3.0, 1e-5)
    Budget(epsilon=3.0, delta=1e-05, accountant='best', adjacency='zero-out')
    """

    epsilon: float
    delta: float
    accountant: Accountant = "best"
    adjacency: Adjacency = "zero-out"

    def __post_init__(self) -> None:
        if not self.epsilon > 0:
            raise SettingError(f"epsilon is {self.epsilon}: a budget must be above 0 (typical: 0.5 to 8)")
        check_delta(self.delta)
        check_accountant(self.accountant)
        check_adjacency(self.adjacency)


class Allowance(Protocol):
    """What may still be released, and what may be said about all of it."""

    def covers(self, event: Event) -> bool:
        """Whether this event may be released now."""

    def spend(self, event: Event) -> None:
        """Note that it is about to be released."""

    def price(self, delta: float, accountant: Accountant = "best") -> Price:
        """What everything this allowance lets out costs, fixed before the run."""


class Planned:
    """A multiset of events decided before the run; its price is that of the whole plan, however much of it is used.

    >>> from reticent.accounting.events import Gaussian
    >>> plan = Planned({Gaussian(2.0): 1})
    >>> plan.spend(Gaussian(2.0)); plan.covers(Gaussian(2.0))
    False
    """

    def __init__(self, events: Tally | Iterable[Event]):
        self.plan: Tally = dict(events) if isinstance(events, dict) else Counter(events)
        self._left = Counter(self.plan)

    def covers(self, event: Event) -> bool:
        """Whether the plan holds one more of this event."""
        return self._left[event] > 0

    def spend(self, event: Event) -> None:
        """Take one of this event out of the plan."""
        if not self.covers(event):
            raise BudgetSpent(f"{event} is not (or no longer) in the plan: nothing was released. Plan more rounds.")
        self._left[event] -= 1

    def price(self, delta: float, accountant: Accountant = "best") -> Price:
        """The price of the whole plan."""
        return price(self.plan, delta, accountant=accountant)


def most_concentrated(budget: Budget, before: Iterable[Event] = ()) -> tuple[float, float]:
    """The order at which a budget affords the most zCDP after what was released before, and how much.

    Two examples away zCDP counts four times.

    >>> order, rho = most_concentrated(Budget(1.0, 1e-5))
    >>> round(rho, 4)
    0.0306
    """
    costs = [(replaced if budget.adjacency == "replace" else curve)(event, ORDERS) for event in before]
    rhos = (budget.epsilon - overhead(ORDERS, budget.delta) - sum(costs)) / ORDERS
    rhos /= 4 if budget.adjacency == "replace" else 1
    best = int(np.argmax(rhos))
    if rhos[best] <= 0:
        raise SettingError(f"epsilon {budget.epsilon:g} at delta {budget.delta:g} is too small to spend: raise it")
    return float(ORDERS[best]), float(rhos[best])


def divergence(event: Event, order: float, adjacency: Adjacency = "zero-out") -> float:
    """The Renyi divergence of an event at one order; infinite where a cap would take a share of delta.

    >>> from reticent.accounting.events import Gaussian
    >>> divergence(Gaussian(2.0), 8.0)
    1.0
    """
    if isinstance(event, SelectiveRelease) and event.cap is not None:
        return math.inf
    if adjacency == "add-or-remove" and counts_examples(event):
        return math.inf
    return float((replaced if adjacency == "replace" else curve)(event, np.array([order]))[0])


class RenyiFilter:
    """For events chosen during the run: one order fixed before it, divergences summed, never above the budget.

    Feldman & Zrnic 2021, theorem 4.3; docs/accounting.md has the proof. Whitehouse et al. 2023 prove the like for zCDP.
    What may be said is the budget, never the realised spend.

    >>> from reticent.accounting.events import Gaussian
    >>> filter = RenyiFilter(order=10, epsilon=2.0, delta=1e-5)
    >>> filter.covers(Gaussian(2.5)), filter.covers(Gaussian(2.0))
    (True, False)
    """

    def __init__(self, order: float, epsilon: float, delta: float, adjacency: Adjacency = "zero-out"):
        Budget(epsilon, delta, adjacency=adjacency)
        self.order, self.epsilon, self.delta, self.adjacency = float(order), epsilon, delta, adjacency
        self.limit = epsilon - float(overhead(self.order, delta)) if self.order > 1 else 0.0
        self.spent = 0.0
        if not self.limit > 0:
            raise SettingError(
                f"order {order} leaves nothing of epsilon {epsilon} at delta {delta}: take a higher order"
            )

    def cost(self, event: Event) -> float:
        """The Renyi divergence of an event at the filter's order."""
        return divergence(event, self.order, self.adjacency)

    def covers(self, event: Event) -> bool:
        """Whether the sum of divergences stays within the limit."""
        return self.spent + self.cost(event) <= self.limit

    def spend(self, event: Event) -> None:
        """Add the event's divergence to the sum."""
        if not self.covers(event):
            raise BudgetSpent(f"{event} would pass the filter's budget of epsilon {self.epsilon}: nothing was released")
        self.spent += self.cost(event)

    def price(self, delta: float, accountant: Accountant = "best") -> Price:
        """The filter's own budget, at the delta asked for."""
        _refuse_pld(accountant)
        epsilon = self.epsilon if delta == self.delta else max(0.0, self.limit + float(overhead(self.order, delta)))
        why = f"Renyi filter of order {self.order:g}, fixed before the run"
        return Price(epsilon, delta, "rdp", self.order, epsilon, None, why, self.adjacency)


def _refuse_pld(accountant: Accountant) -> None:
    if accountant == "pld":
        raise SettingError("PLD is not valid where parameters are chosen during the run: use accountant='rdp'")


class Unlimited:
    """Lets everything out: for methods that give no guarantee.

    >>> Unlimited("the test has no noise").price(1e-5).epsilon
    inf
    """

    def __init__(self, why: str):
        self.why = why

    def covers(self, event: Event) -> bool:  # noqa: ARG002 - the answer is the same for all
        """Always."""
        return True

    def spend(self, event: Event) -> None:
        """Nothing to note."""

    def price(self, delta: float, accountant: Accountant = "best") -> Price:  # noqa: ARG002
        """Infinite, and why."""
        return Price(math.inf, delta, "none", None, None, None, self.why)
