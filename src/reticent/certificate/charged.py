"""What a guarantee was priced by: the events that were planned and released, so that anybody can price them again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from reticent.accounting import Event, Guarantee, Mark, RenyiFilter, price
from reticent.accounting.event_json import from_json, to_json
from reticent.accounting.events import Tally
from reticent.accounting.pricing import Accountant, check_accountant
from reticent.errors import DataError, ReticentError
from reticent.results.fields import Fields


@dataclass(frozen=True, kw_only=True)
class Charged:
    """The events of a run, and how far its ledger had come with them.

    >>> from reticent.accounting import Gaussian
    >>> charged = Charged(planned={Gaussian(2.0): 4}, released={Gaussian(2.0): 4}, ledger=Mark(4, "ab"))
    >>> round(charged.cost(Guarantee("proved", 5.0, 1e-5)), 2)
    4.38
    """

    planned: Tally | None
    """Fixed before the run; None where a filter let pass what was chosen during it."""
    released: Tally
    already: Tally | None = None
    """What was released of the same examples beside the run, before its first round."""
    past: Tally | None = None
    """What the runs released that made the starting weights, where it is composed with the rest."""
    ledger: Mark
    over: bool = True
    """Whether the run got to its end: then all that was planned was released."""
    accountant: Accountant = "best"
    filter_order: float | None = None

    def before(self) -> Tally:
        """What was released before the run."""
        return self.already or {}

    def priced(self) -> dict[Event, int]:
        """The events that the guarantee is the price of."""
        run = self.released if self.planned is None else self.planned
        return dict(Counter(run) + Counter(self.before()) + Counter(self.past or {}))

    def cost(self, said: Guarantee) -> float:
        """What the events cost at the delta and for the neighbours of a guarantee, priced anew."""
        if self.filter_order is None:
            return price(self.priced(), said.delta, accountant=self.accountant, adjacency=said.adjacency).epsilon
        limit = RenyiFilter(self.filter_order, said.epsilon, said.delta, said.adjacency)
        spent = sum(count * limit.cost(event) for event, count in self.priced().items())
        return said.epsilon - limit.limit + spent

    def to_json(self) -> dict[str, object]:
        """The events as plain data."""
        return {
            "planned": None if self.planned is None else _rows(self.planned),
            "released": _rows(self.released),
            "already": _rows(self.before()),
            "past": _rows(self.past or {}),
            "ledger": self.ledger.to_json(),
            "over": self.over,
            "accountant": self.accountant,
            "filter_order": self.filter_order,
        }

    @staticmethod
    def from_json(said: Fields) -> Charged:
        """The events that `to_json` wrote."""
        mark = said.need_part("ledger")
        try:
            accountant = check_accountant(said.need("accountant", str))
        except ReticentError as error:
            raise DataError(f"{said.where}: {error}") from error
        return Charged(
            planned=_tally(said, "planned"),
            released=_tally(said, "released") or {},
            already=_tally(said, "already"),
            past=_tally(said, "past"),
            ledger=Mark(mark.need("entries", int), mark.need("chain", str)),
            over=said.need("over", bool),
            accountant=accountant,
            filter_order=said.get("filter_order", float),
        )


def _rows(tally: Tally) -> list[dict[str, object]]:
    return [{"count": count, "event": to_json(event)} for event, count in tally.items()]


def _tally(said: Fields, name: str) -> Tally | None:
    rows = said.parts(name)
    if rows is None:
        return None
    found: Counter[Event] = Counter()
    for row in rows:
        found[_event(row.need_part("event"))] += row.need("count", int)
    return dict(found)


def _event(said: Fields) -> Event:
    data: Mapping[str, object] = said.data
    try:
        return from_json(data)  # type: ignore[arg-type]
    except (ArithmeticError, AttributeError, LookupError, ReticentError, TypeError, ValueError) as error:
        raise DataError(f"{said.where} is no event: {error!r}. Bring the file back as it was") from error
