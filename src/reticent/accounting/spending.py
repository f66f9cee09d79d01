"""Spending: what was, or may yet be, released of the same examples, by one run or by several."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from reticent.accounting.adjacency import Adjacency, Unit, check_adjacency, check_unit
from reticent.accounting.budget import divergence
from reticent.accounting.event_json import Json, from_json, to_json
from reticent.accounting.events import Event, SelectiveRelease, Tally, Unbounded
from reticent.accounting.pricing import Price, price
from reticent.accounting.renyi.conversions import overhead
from reticent.accounting.renyi.curves import UNCOUNTED, counts_examples, why_infinite
from reticent.accounting.simplify import tally
from reticent.errors import DataError, SettingError, require

COUNTED = "the number of examples was counted on them, which proves nothing for adding or removing one: give size="


@dataclass(frozen=True)
class Filtered:
    """Releases that were chosen on the way: at this order a filter held their divergences to `limit`."""

    order: float
    limit: float
    adjacency: Adjacency

    def __post_init__(self) -> None:
        require(self.order > 1 and self.limit >= 0, f"{self} cannot be: an order is above 1, a limit 0 or more")

    def why_not(self, order: float, adjacency: Adjacency) -> str | None:
        """Why its limit says nothing at another order, or of other neighbours; None if it does.

        Divergences grow with the order, so it holds at every lower one. What holds for one example more or less holds
        for one that contributes nothing.
        """
        if self.order < order:
            return f"a filter of order {self.order:g} chose its releases, which proves nothing at order {order:g}"
        if self.adjacency != adjacency and (self.adjacency, adjacency) != ("add-or-remove", "zero-out"):
            return f"a filter chose its releases for {self.adjacency}, which proves nothing for {adjacency}"
        return None


@dataclass(frozen=True)
class Spending:
    """Events that were fixed in advance, and filters for what was not; spendings on the same examples add up.

    >>> from reticent.accounting.events import Gaussian
    >>> both = Spending({Gaussian(4.0): 1}) + Spending({Gaussian(4.0): 2})
    >>> both.events, round(both.price(1e-5).epsilon, 2)
    ({Gaussian(noise_multiplier=4.0): 3}, 1.7)
    """

    events: Tally = field(default_factory=dict)
    filters: tuple[Filtered, ...] = ()
    declared: bool = True
    """Whether all numbers follow from a declared size, so that it may be said of adding or removing an example."""
    unit: Unit = "example"
    """Whose contribution the events are priced for."""

    def __post_init__(self) -> None:
        """Put the filters in order: whichever run was added first, the spending is the same."""
        in_order = sorted(self.filters, key=lambda one: (one.order, one.limit, one.adjacency))
        object.__setattr__(self, "filters", tuple(in_order))

    def __add__(self, other: Spending) -> Spending:
        """Both together; what was priced for one row proves nothing for a person with several, nor the other way."""
        if self and other:
            refuse_mixed(self.unit, other.unit)
        events = Counter(self.events) + Counter(other.events)
        unit = self.unit if self else other.unit
        return Spending(dict(events), self.filters + other.filters, self.declared and other.declared, unit)

    def __bool__(self) -> bool:
        return bool(self.events or self.filters)

    def each(self) -> Iterator[Event]:
        """Every event as often as it happens."""
        return Counter(self.events).elements()

    def divergence(self, order: float, adjacency: Adjacency = "zero-out") -> float:
        """The Renyi divergence of all of it at one order: never less than what comes of it.

        >>> from reticent.accounting.events import Gaussian
        >>> Spending({Gaussian(2.0): 3}).divergence(8.0)
        3.0
        """
        if self.why_not(order, adjacency) is not None:
            return math.inf
        costs = [count * divergence(event, order, adjacency) for event, count in tally(self.events).items()]
        return math.fsum([*costs, *(one.limit for one in self.filters)])

    def why_not(self, order: float, adjacency: Adjacency = "zero-out") -> str | None:
        """The reason it has no finite divergence at this order; None if it has one."""
        if not self.declared and adjacency == "add-or-remove":
            return COUNTED
        for event in self.events:
            if math.isinf(divergence(event, order, adjacency)):
                if isinstance(event, SelectiveRelease) and event.cap is not None:
                    return "its cap on hidden attempts takes a share of delta, which a filter cannot give: take none"
                if adjacency == "add-or-remove" and counts_examples(event):
                    return UNCOUNTED
                return why_infinite(event) or f"nothing is proved of {event} at order {order:g}"
        return next(filter(None, (one.why_not(order, adjacency) for one in self.filters)), None)

    def price(self, delta: float, adjacency: Adjacency = "zero-out") -> Price:
        """What all of it costs if its parts were fixed in advance; with filters, at the lowest of their orders."""
        if not self.filters and (self.declared or adjacency != "add-or-remove"):
            return price(self.events, delta, adjacency=adjacency)
        order = min((one.order for one in self.filters), default=math.inf)
        total = self.divergence(order, adjacency)
        if math.isinf(total):
            return Price(math.inf, delta, "none", None, None, None, self.why_not(order, adjacency) or "", adjacency)
        epsilon = max(0.0, total + float(overhead(order, delta)))
        why = f"Renyi divergence of order {order:g}, that of a filter"
        return Price(epsilon, delta, "rdp", order, epsilon, None, why, adjacency)

    def to_json(self) -> dict[str, Json]:
        """Plain JSON data, always in the same order.

        >>> Spending.from_json(Spending().to_json()) == Spending()
        True
        """
        events: list[Json] = [
            {"times": count, "event": to_json(event)}
            for event, count in sorted(self.events.items(), key=lambda item: repr(item[0]))
        ]
        filters: list[Json] = [
            {"order": one.order, "limit": one.limit, "adjacency": one.adjacency} for one in self.filters
        ]
        said: dict[str, Json] = {"declared": self.declared, "events": events, "filters": filters}
        return said if self.unit == "example" else said | {"unit": self.unit}

    @staticmethod
    def from_json(data: object) -> Spending:
        """What `to_json` wrote; what is not known here costs infinity, and says why."""
        try:
            return _read(data)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise DataError(f"this tells of no spending of ours: {str(data)[:80]}") from error


def _read(data: object) -> Spending:
    if not isinstance(data, dict) or data.keys() - {"unit"} != {"declared", "events", "filters"}:
        raise ValueError(data)
    counts = Counter[Event]()
    for part in data["events"]:
        if not isinstance(part["times"], int) or part["times"] < 1:
            raise ValueError(part)
        counts[from_json(part["event"])] += part["times"]
    filters = tuple(
        Filtered(float(one["order"]), float(one["limit"]), check_adjacency(one["adjacency"])) for one in data["filters"]
    )
    return Spending(dict(counts), filters, data["declared"] is True, check_unit(data.get("unit", "example")))


def refuse_mixed(unit: Unit, other: Unit) -> None:
    """Refuse to add up what was promised to rows and to persons.

    >>> refuse_mixed("person", "example")
    Traceback (most recent call last):
    reticent.errors.SettingError: what is promised by person and by example does not add up: ...
    """
    if unit != other:
        raise SettingError(
            f"what is promised by {unit} and by {other} does not add up: take groups= in all runs on the same data, or "
            "in none"
        )


def spending_of(events: Iterable[Event], *, declared: bool = True, unit: Unit = "example") -> Spending:
    """The spending of events, one by one.

    >>> from reticent.accounting.events import Gaussian
    >>> spending_of([Gaussian(1.0), Gaussian(1.0)]).events
    {Gaussian(noise_multiplier=1.0): 2}
    """
    return Spending(dict(Counter(events)), declared=declared, unit=unit)


NOTHING_SPENT = Spending()
UNKNOWN_SPENDING = Spending({Unbounded("nothing is known of what was released for these weights"): 1})
