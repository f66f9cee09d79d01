"""The bill of a run: its plan, what its starting weights cost, and the dataset that is charged for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from torch import nn

from reticent.accounting import Budget, Event, Guarantee, Spending, price
from reticent.accounting.adjacency import Unit, adjacency_of
from reticent.accounting.lineage import Lineage
from reticent.accounting.spending import spending_of
from reticent.budgets import DatasetBudget
from reticent.budgets.reserving import Reservation
from reticent.methods import Method, Plan, plan
from reticent.methods.planning import default_delta
from reticent.methods.solving import tally
from reticent.origins import Beginning, Initial, begin, declared_public


@dataclass(frozen=True)
class Bill:
    """What the weights of a run may cost the examples, and where that is written down."""

    plan: Plan
    beginning: Beginning
    before: Spending
    """What is released of the examples before the first round, by the run's owner."""
    declared: bool
    """Whether the number of examples was."""
    assumes: tuple[str, ...] = ()
    """What was declared of the examples."""
    reservation: Reservation | None = None
    run: str = field(default_factory=lambda: uuid4().hex)
    """The id of the run, by which those that train its weights on know it."""
    others: Lineage = field(default_factory=Lineage)
    """The runs that made the starting weights, and were declared to owe nothing to the examples."""

    def meeting(self, model: nn.Module) -> Bill:
        """The same bill for a model as it is now; refuses weights of which nothing was said."""
        return replace(self, others=declared_public(model, self.beginning, self.run))

    def resumed(self, tree: Mapping[str, Any]) -> Bill:
        """The same bill for the run that a checkpoint tells of."""
        return replace(self, run=tree.get("run", self.run), others=Lineage.from_json(tree.get("others", {})))

    def to_tree(self) -> dict[str, object]:
        """What a checkpoint tells of it."""
        return {"run": self.run, "others": self.others.to_json()}

    def reserving(self, dataset: DatasetBudget | None, folder: str | Path | None, *, seeded: bool) -> Bill:
        """The same bill, charged to a dataset, which knows the run by the same id."""
        if dataset is None:
            return self
        place = Reservation(dataset, None if folder is None else Path(folder), seeded=seeded)
        return replace(self, reservation=place, run=place.run)

    @property
    def planned(self) -> Spending:
        """What the rounds of the run may release."""
        return self.plan.spending(declared=self.declared)

    @property
    def lineage(self) -> Lineage:
        """Every run that the weights come from, this one included, with what each may have released."""
        return self.beginning.lineage | self.others | Lineage({self.run: self.before + self.planned})

    def guarantee(self, *, seeded: bool, generator: str) -> Guarantee:
        """What may be said of the run and of all that its weights come from."""
        promised = self.beginning.stated(self.plan.guarantee(seeded=seeded, generator=generator, assumes=self.assumes))
        # Runs before this one may have been charged elsewhere: then the cap of the dataset says nothing of the weights.
        if self.reservation is None or not self.reservation.knows(self.beginning.lineage):
            return promised
        return self.reservation.stated(promised)

    def spent(self, rounds: int) -> float:
        """Epsilon if exactly so many rounds had been planned; no guarantee."""
        plan, apart = self.plan, self.beginning.added
        if plan.adaptive:
            return apart + plan.price.epsilon  # a filter promises its whole budget, never what was used of it
        so_far = tally(plan.method, plan.settings, rounds, plan.already)
        accountant, adjacency = plan.accountant, plan.adjacency
        return apart + price(so_far, plan.price.delta, accountant=accountant, adjacency=adjacency).epsilon

    def described(self) -> dict[str, object]:
        """What a run that goes on must have in common with the one that began."""
        dataset = None if self.reservation is None else self.reservation.place
        return {"initial": self.beginning.said, "dataset": dataset}

    @contextmanager
    def charged(self, *, resumed: bool) -> Iterator[None]:
        """Charge the dataset; when the block ends, all that it takes to go on is on disk, and releases may begin."""
        if self.reservation is not None:
            self.reservation.make(self.planned, self.before, self.plan.method.name, resumed=resumed)
        yield
        if self.reservation is not None:
            self.reservation.begin()


def make_bill(
    method: Method,
    *,
    counted: int,
    size: int | None,
    adjacency: str | None,
    batch_size: float,
    rounds: int | None,
    epochs: float | None,
    budget: Budget | None,
    delta: float | None,
    already: tuple[Event, ...],
    initial: Initial,
    unit: Unit = "example",
    assumes: tuple[str, ...] = (),
) -> Bill:
    """Plan a run; what is asked for is for it and for its starting weights together."""
    adjacency_of(size, adjacency)  # refuses a size that cannot be
    public = counted if size is None else size
    wanted = default_delta(max(1, public)) if delta is None else delta
    start = begin(
        initial,
        adaptive=method.adaptive is not None,
        size=size,
        adjacency=adjacency,
        budget=budget,
        delta=wanted if budget is None else budget.delta,
        already=already,
        unit=unit,
    )
    found = plan(
        method,
        size=public,
        batch_size=batch_size,
        rounds=rounds,
        epochs=epochs,
        budget=start.budget,
        delta=start.own_delta,
        already=start.already,
        adjacency=start.adjacency,
        unit=unit,
    )
    return Bill(found, start, spending_of(already, unit=unit), size is not None, assumes)
