"""The budget of one dataset: a Renyi filter over all that is ever charged to it.

Runs are planned after others have been looked at, so that neither loss distributions nor the best order afterwards
would hold for all of them together. Divergences at one order, fixed with the cap, do: docs/dataset-budget.md.
"""

from __future__ import annotations

import getpass
import json
import math
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, get_args
from uuid import uuid4

from sqlalchemy import Connection, Row, insert, select, update
from sqlalchemy.exc import IntegrityError

from reticent.accounting import Budget, Event, RenyiFilter, Spending
from reticent.accounting.adjacency import Unit, in_words
from reticent.accounting.guarantee import delta_up, round_up
from reticent.accounting.spending import NOTHING_SPENT, refuse_mixed, spending_of
from reticent.budgets.database import Database
from reticent.budgets.schema import charges, datasets
from reticent.errors import BudgetSpent, DataError, ResumeError, SettingError, UnknownName

State = Literal["reserved", "spent", "settled", "unused"]
"""Charged before anything is released; charged, and released from; charged for what its folder shows; given back."""


@dataclass(frozen=True)
class DatasetCharge:
    """One line of the history: what a run was charged, and what is known of it since."""

    run: str
    state: State
    method: str
    who: str
    at: str
    note: str
    before: Spending
    """What is released outside of the run's own ledger, such as statistics to normalise by."""
    planned: Spending
    used: Spending | None
    """What the run's folder showed when it was settled."""

    @property
    def spending(self) -> Spending:
        """What counts: the whole plan, until the folder of the run has shown that it was less."""
        return self.before + (self.planned if self.used is None else self.used)


@dataclass(frozen=True)
class DatasetBudget:
    """A named dataset and its cap; take it from a `DatasetLedger`, and give it to `rt.fit` or `rt.Run`.

    Promise: all that is released by what was charged here is (epsilon, delta)-DP together, in whatever order and at the
    same time it ran, and however the plan of a run was chosen after looking at others.
    """

    name: str
    cap: Budget
    order: float
    """The one order at which everything is counted."""
    database: Database
    unit: Unit = "example"
    """Whose contribution the cap is for: that of one example, or of one person with all rows."""

    @property
    def limit(self) -> float:
        """How much divergence the cap allows."""
        return RenyiFilter(self.order, self.cap.epsilon, self.cap.delta, self.cap.adjacency).limit

    def __str__(self) -> str:
        cap, differ = self.cap, in_words(self.cap.adjacency, self.unit)
        return (
            f"({round_up(cap.epsilon)}, {delta_up(cap.delta)})-DP, {differ}, by a Renyi filter of order {self.order:g} "
            "fixed with the cap"
        )

    # -- what was charged ----------------------------------------------------------------------------------------------

    def history(self) -> list[DatasetCharge]:
        """Everything that was charged, oldest first."""
        with self._locked() as connection:
            return list(self._charged(connection))

    def share(self, charged: Iterable[DatasetCharge] | None = None) -> float:
        """How much of the cap some charges take, or all of them; what may be said of them is the cap itself."""
        return self._sum(self.history() if charged is None else charged) / self.limit

    def _sum(self, charged: Iterable[DatasetCharge]) -> float:
        return math.fsum(one.spending.divergence(self.order, self.cap.adjacency) for one in charged)

    # -- charging ------------------------------------------------------------------------------------------------------

    def charge(
        self, releases: Event | Iterable[Event] | Spending, *, note: str, declared: bool = True
    ) -> DatasetCharge:
        """Charge what was, or will be, released without a run of ours; refused if the cap does not cover it.

        `declared`: whether the numbers in it depend on how many examples there are; see `size` of `rt.fit`.
        """
        if not isinstance(releases, Spending):
            each = [releases] if isinstance(releases, Event) else releases
            releases = spending_of(each, declared=declared, unit=self.unit)
        return self.reserve(releases, note=note, state="spent")

    def reserve(
        self,
        planned: Spending,
        *,
        before: Spending = NOTHING_SPENT,
        run: str | None = None,
        method: str = "",
        note: str = "",
        state: State = "reserved",
    ) -> DatasetCharge:
        """Charge a whole plan before its first release; refused if the cap does not cover it, or if `run` is known."""
        new = DatasetCharge(run or uuid4().hex, state, method, who(), now(), note, before, planned, None)
        self._refuse_unproved(new.spending)
        with self._locked() as connection:
            self._refuse_beyond(self._sum(self._charged(connection)), new.spending)
            self._insert(connection, new)
        return new

    def _insert(self, connection: Connection, new: DatasetCharge) -> None:
        values = {
            "run": new.run,
            "dataset": self.name,
            "state": new.state,
            "method": new.method,
            "who": new.who,
            "at": new.at,
            "note": new.note,
            "before": _text(new.before),
            "planned": _text(new.planned),
        }
        try:
            connection.execute(insert(charges).values(values))
        except IntegrityError as error:
            raise SettingError(
                f"run {new.run} was charged before: a second run needs an id of its own, and to go on with the first "
                "takes its folder"
            ) from error

    def _refuse_unproved(self, spending: Spending) -> None:
        refuse_mixed(self.unit, spending.unit)
        why = spending.why_not(self.order, self.cap.adjacency)
        if why is not None:
            raise BudgetSpent(f"dataset {self.name!r} cannot be charged: {why}. Nothing was charged or released")

    def _refuse_beyond(self, spent: float, spending: Spending) -> None:
        """The filter: the sum of all divergences at the one order never passes the limit."""
        cost, limit = spending.divergence(self.order, self.cap.adjacency), self.limit
        if not spent + cost <= limit:
            share, left = 100 * cost / limit, 100 * max(0.0, 1 - spent / limit)
            raise BudgetSpent(
                f"dataset {self.name!r} has {left:.1f} % of its cap of epsilon {self.cap.epsilon:g} left, and this "
                f"would take {share:.1f} %: nothing was charged or released. Take more noise, fewer rounds or a "
                "smaller epsilon"
            )

    # -- a run that goes on, or is over --------------------------------------------------------------------------------

    def find(self, run: str) -> DatasetCharge | None:
        """What a run was charged, if it was."""
        with self._locked() as connection:
            return next((one for one in self._charged(connection) if one.run == run), None)

    def begin(self, run: str) -> None:
        """Note that the run may release from now on: its charge is given back only against its folder."""
        self._move(run, ("reserved", "spent"), state="spent")

    def settle(self, run: str, used: Spending) -> DatasetCharge:
        """Charge what a run has used instead of its plan; only its folder shows that (`DatasetLedger.settle`)."""
        known = self.find(run)
        if known is None:
            raise UnknownName("run", run, ())
        order, adjacency = self.order, self.cap.adjacency
        if not used.divergence(order, adjacency) <= known.planned.divergence(order, adjacency):
            raise DataError(f"run {run} shows more releases than it was charged: nothing was given back")
        state: State = "settled" if used or known.before else "unused"
        self._move(run, ("reserved", "spent"), state=state, used=_text(used))
        return self.find(run) or known

    def _move(self, run: str, allowed: tuple[State, ...], **values: str) -> None:
        """Change the charge of a run, if it is still in one of these states."""
        with self._locked() as connection:
            here = charges.c.run == run, charges.c.dataset == self.name, charges.c.state.in_(allowed)
            if connection.execute(update(charges).where(*here).values(values)).rowcount != 1:
                raise ResumeError(
                    f"run {run} is settled, or not charged to dataset {self.name!r}: it may release nothing more. "
                    "Start a new run in another folder"
                )

    # -- the database --------------------------------------------------------------------------------------------------

    @contextmanager
    def _locked(self) -> Iterator[Connection]:
        """A transaction that holds the dataset: nobody else charges to it before it ends."""
        with self.database.transaction() as connection:
            connection.execute(select(datasets.c.name).where(datasets.c.name == self.name).with_for_update()).one()
            yield connection

    def _charged(self, connection: Connection) -> Iterator[DatasetCharge]:
        rows = connection.execute(select(charges).where(charges.c.dataset == self.name).order_by(charges.c.at))
        return map(_read, rows)


def _read(row: Row[tuple[str, ...]]) -> DatasetCharge:
    told = row._mapping
    if told["state"] not in get_args(State):
        raise DataError(
            f"the charge of run {told['run']} is {told['state']!r}, which is not known here: update Reticent"
        )
    used = None if told["used"] is None else _spending(told["used"])
    texts = {name: told[name] for name in ("run", "state", "method", "who", "at", "note")}
    return DatasetCharge(**texts, before=_spending(told["before"]), planned=_spending(told["planned"]), used=used)


def _text(spending: Spending) -> str:
    return json.dumps(spending.to_json())


def _spending(text: str) -> Spending:
    try:
        return Spending.from_json(json.loads(text))
    except ValueError as error:
        raise DataError(f"the ledger is damaged: {text[:80]!r} is no spending. Bring back its database") from error


def now() -> str:
    """The time in Greenwich."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def who() -> str:
    """Who is asking, as the system knows them."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no such user in this container
        return str(os.getuid())
