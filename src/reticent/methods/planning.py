"""The plan: how much noise and how many rounds, fixed before the run from public numbers alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace

from reticent.accounting import (
    Adjacency,
    Allowance,
    Budget,
    Event,
    Guarantee,
    Planned,
    Price,
    RenyiFilter,
    Unlimited,
    price,
)
from reticent.accounting.adjacency import Unit
from reticent.accounting.claims.claimed import Orders, PaperClaim
from reticent.accounting.guarantee import PRIVATE_TIMES
from reticent.accounting.pricing import Accountant
from reticent.accounting.spending import Filtered, Spending
from reticent.errors import SettingError
from reticent.inside import RoundSettings
from reticent.inside.lattice import LAW
from reticent.inside.randomness import GENERATOR
from reticent.inside.rounding import COVERED_BY_TEST
from reticent.methods import solving
from reticent.methods.claiming import claim_of
from reticent.methods.method import Method
from reticent.methods.solving import tally
from reticent.outside import Open

FORM = "the form of the examples, their types and shapes, is public: that of the first, where they are records"
APART = "the model and its loss treat examples apart: checked before and during the run, not proved"


@dataclass(frozen=True)
class Plan:
    """What a run will do at most; its price is the run's guarantee, also if the run is left earlier."""

    method: Method
    settings: RoundSettings
    rounds: int
    price: Price
    accountant: Accountant = "best"
    filter_order: float | None = None
    """The one order of the Renyi filter, for methods that choose their noise during the run."""
    already: tuple[Event, ...] = ()
    """What was released of the same examples before; it is part of the price."""
    unit: Unit = "example"
    """Who the examples are: rows, or persons with all their rows."""

    @property
    def adjacency(self) -> Adjacency:
        """Which two datasets the guarantee is about."""
        return self.price.adjacency

    @property
    def adaptive(self) -> bool:
        """Whether releases are chosen during the run, so that a filter, not a list, limits them."""
        return self.filter_order is not None

    def tally(self, rounds: int | None = None) -> dict[Event, int]:
        """How often each event will be written in so many rounds (all of them, if not said)."""
        return tally(self.method, self.settings, self.rounds if rounds is None else rounds)

    def allowance(self) -> Allowance:
        """What the vault lets out: the planned events, each as often as planned, or what the filter lets pass."""
        if self.filter_order is not None:
            found = RenyiFilter(self.filter_order, self.price.epsilon, self.price.delta, self.adjacency)
            for event in self.already:
                found.spend(event)  # in a ledger of its own, out of the same budget
            return found
        if math.isinf(self.price.epsilon):
            return Unlimited(self.price.why)
        return Planned(self.tally())

    def spending(self, *, declared: bool) -> Spending:
        """What a run of it may release at most; `declared`: whether the number of examples was."""
        allowed = self.allowance()
        if isinstance(allowed, RenyiFilter):
            kept = Filtered(allowed.order, allowed.limit - allowed.spent, allowed.adjacency)
            return Spending(filters=(kept,), declared=declared, unit=self.unit)
        return Spending(self.tally(), declared=declared, unit=self.unit)

    @property
    def bundles(self) -> bool:
        """Whether in some round one event pays for several releases, of which only the first is sealed."""
        if type(self.method.gate) is Open:
            return False
        turned = (self.method.turned(self.settings, number) for number in range(self.rounds))
        return any(self.method.charge(settings).covers for settings in turned)

    def claim(self, kept: int | None = None, orders: Orders = "paper") -> PaperClaim | None:
        """What the method's paper would claim after so many kept updates, where it states a rule of its own.

        Not said how many: as many as can be expected at best.
        """
        method, settings, delta = self.method, self.settings, self.price.delta
        return claim_of(method, settings, self.rounds, delta, kept=kept, already=self.already, orders=orders)

    def guarantee(self, *, seeded: bool, generator: str = GENERATOR, assumes: tuple[str, ...] = ()) -> Guarantee:
        """What this plan promises for every run of it; `assumes` is what was declared of the examples."""
        proof = self.method.gate.proof
        route = "filter" if self.adaptive else proof.route
        return Guarantee.of(
            self.price,
            route=route,
            covers=(
                *(f"what was released before training: {event}" for event in self.already),
                "every release of training: the weights after every round, the final model, and when it stopped",
            ),
            excludes=(
                "choices made by looking at the data before the run (settings, preprocessing)",
                _timing(route),
                "the folder of a run that is still going: its checkpoint holds the key of its randomness",
            ),
            assumptions=(
                self._known(),
                FORM,
                *assumes,
                APART,
                *proof.assumptions,
                *_promises(self.method),
                generator,
                LAW,
                COVERED_BY_TEST,
            ),
            seeded=seeded,
            unit=self.unit,
        )

    def _known(self) -> str:
        many = f"{self.unit}s"
        if self.adjacency == "add-or-remove":
            return f"the declared number of {many} is public and was not counted on them; their true number is private"
        return f"the number of {many} is public"


def _timing(route: str) -> str:
    """What is said of time: what it tells of the examples is covered by no guarantee."""
    if route in PRIVATE_TIMES:
        return "timing side channels: how long it took must stay private, and is not written down"
    return "timing side channels: how long it took is taken to be public"


def plan(
    method: Method,
    *,
    size: int,
    batch_size: float | None = None,
    rounds: int | None = None,
    epochs: float | None = None,
    budget: Budget | None = None,
    delta: float | None = None,
    accountant: Accountant = "best",
    already: Iterable[Event] = (),
    adjacency: Adjacency = "add-or-remove",
    unit: Unit = "example",
) -> Plan:
    """Fix noise, rounds and batch size: the one of them that is not given follows from the budget.

    All of it follows from `size`, the declared number of examples: so one example more or less changes no number here.
    Where `size` is the length of the data, say `adjacency="zero-out"`, as a run without a declared size does. With
    `unit="person"`, examples are persons with all their rows.

    >>> from reticent.methods import dpsgd
    >>> plan(dpsgd(noise_multiplier=2.0), size=1000, batch_size=100, epochs=1, delta=1e-5).rounds
    10
    >>> plan(dpsgd(noise_multiplier=2.0), size=1000, rounds=10, budget=Budget(1.0, 1e-5)).settings.batch_size
    124
    """
    before = tuple(already)
    budget = replace(budget, adjacency=adjacency) if budget is not None else None
    solving.refuse_unpriced(method)
    solving.refuse_unserved(method)
    solving.refuse_unmixable(method)
    if epochs is not None and rounds is not None:
        raise SettingError("give rounds or epochs, not both")
    if rounds is not None and (rounds < 1 or rounds != int(rounds)):
        raise SettingError(f"a run needs at least one round, and a whole number of them, not {rounds}")
    if size != int(size):
        raise SettingError(f"size must be a whole number of examples, not {size}")
    if batch_size is not None and not 0 < batch_size < math.inf:
        raise SettingError(f"batch_size must be above 0 and finite, not {batch_size}")
    if batch_size is None:
        batch_size = solving.largest_batch(method, size, rounds, epochs, budget, before)
    if epochs is not None:
        rounds = solving.rounds_in(epochs, size, batch_size)
    if method.adaptive is not None:
        return replace(_filtered(method, method.adaptive, size, batch_size, rounds, budget, before), unit=unit)
    if method.noise_multiplier is None:
        method = solving.with_least_noise(method, size, batch_size, rounds, budget, before)
    method = solving.for_rounds(method, size, batch_size, rounds or 1)
    settings = solving.settings_of(method, size, batch_size)
    delta = budget.delta if budget is not None else default_delta(size) if delta is None else delta
    accountant = budget.accountant if budget is not None else accountant
    if budget is not None and not solving.hopeless(method, settings, budget):
        rounds = solving.affordable(method, settings, rounds, budget, before)
    if rounds is None:
        raise SettingError("how long should the run be? Give rounds, epochs or a budget")
    method = solving.for_rounds(method, size, batch_size, rounds)
    cost = price(tally(method, settings, rounds, before), delta, accountant=accountant, adjacency=adjacency)
    return Plan(method, settings, rounds, cost, accountant, already=before, unit=unit)


def _promises(method: Method) -> tuple[str, ...]:
    """What rests on stages that are not of this package; a bound is cut to its promise, whoever wrote it."""
    stages: dict[str, object] = {
        "draws as its amplify says": method.sampler,
        "its sensitivity": method.query,
        "its event": method.noise,
        "its charge": method.gate,
    }
    return tuple(
        f"rests on the promise of {name}: {promise}"
        for promise, stage in stages.items()
        for name in dict.fromkeys(_foreign(stage))
    )


def _foreign(stage: object) -> Iterator[str]:
    """The names of a stage and of its parts that are not of this package."""
    kind = stage if isinstance(stage, type) else type(stage)
    if is_dataclass(kind) or callable(stage):
        if kind.__module__.partition(".")[0] != "reticent":
            yield getattr(stage, "__name__", kind.__name__)
        if is_dataclass(stage) and not isinstance(stage, type):
            for part in fields(stage):
                yield from _foreign(getattr(stage, part.name))


def default_delta(size: int) -> float:
    """A delta well below one in the number of examples.

    >>> default_delta(1_000)
    1e-05
    """
    return min(1e-5, 1 / (10 * size))


def _filtered(
    method: Method,
    stage: str,
    size: int,
    batch_size: float,
    rounds: int | None,
    budget: Budget | None,
    already: tuple[Event, ...],
) -> Plan:
    """A plan whose noise is chosen while it runs, by the stage of this name."""
    if budget is None or rounds is None:
        raise SettingError(f"{method.name} plans its noise while it runs: give a budget, and rounds or epochs")
    if budget.accountant == "pld":
        raise SettingError(f"PLD is not valid for {method.name}, whose noise is chosen during the run: use rdp")
    first = RoundSettings(size, batch_size, method.max_grad_norm, 1.0)
    started = getattr(method, stage).start(first, rounds, budget, already)
    method = replace(method, **{stage: started.stage})
    cost = started.filter.price(budget.delta)
    found = Plan(method, started.settings, started.rounds, cost, "rdp", started.filter.order, already)
    if found.bundles:
        raise SettingError(
            f"no proof covers {method.name} with a gate that hides what it drops: its noise is chosen during the run"
        )
    return found
