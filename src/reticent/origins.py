"""Origins: where starting weights come from, and what they have cost the same examples already.

A run marks the modules that it trains with its id and those of the runs before it, so that the next one knows: the mark
is a text in the module, which copies and pickles keep. Weights that come another way (a file, another library) carry no
mark: nobody but their owner knows.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Literal, Protocol

from torch import nn

from reticent.accounting import Adjacency, Budget, Event, Guarantee, Price, Spending
from reticent.accounting.adjacency import Unit, adjacency_of
from reticent.accounting.event_json import Json
from reticent.accounting.guarantee import round_up
from reticent.accounting.lineage import UNKNOWN_LINEAGE, Lineage
from reticent.accounting.spending import UNKNOWN_SPENDING, refuse_mixed
from reticent.errors import DataError, SettingError

MARK = "_reticent_spending"

DECLARED = "the starting weights owe nothing to these examples: declared, not proved"
REST = "what other runs gave to the starting weights owes nothing to these examples: declared, not proved"
IN_ADVANCE = "the settings of this run were fixed without regard to what the runs before it gave"
INCLUDED = "every release of the runs that made the starting weights, on the same examples"


class Spender(Protocol):
    """A run, or what came of one: it knows what its weights have cost."""

    @property
    def lineage(self) -> Lineage:
        """Every run that made these weights, and what it released of the same examples."""


Initial = Literal["public"] | Spender | Sequence[Spender | Literal["public"]] | None
"""What is said of the starting weights: that they owe nothing to the examples, which run (or runs) made them, or both:
these runs count, and the rest owes nothing."""


@dataclass(frozen=True)
class Beginning:
    """What a run starts from, and what that leaves of the budget, which is for both together."""

    lineage: Lineage
    already: tuple[Event, ...]
    budget: Budget | None
    delta: float
    adjacency: Adjacency
    apart: Price | None = None
    """What the starting weights cost where that can only be added to the price of the run, and not composed with it."""
    public: bool = False
    """Whether all that is not in the lineage was declared to owe nothing to the examples."""
    promises: tuple[Guarantee, ...] = ()
    """What the runs that made the starting weights promise: what those rest on, this one rests on."""

    @property
    def past(self) -> Spending:
        """What the runs before this one released."""
        return self.lineage.spending

    @property
    def said(self) -> Json:
        """What was said of the starting weights, for the description of a run."""
        if self.public and self.lineage:
            return ["public", self.lineage.to_json()]
        return "public" if self.public else self.lineage.to_json() if self.lineage else None

    @property
    def own_delta(self) -> float:
        """What the plan of the run is priced at."""
        return self.delta if self.apart is None else self.delta / 2

    @property
    def added(self) -> float:
        """How much epsilon is added to that of the plan."""
        return 0.0 if self.apart is None else self.apart.epsilon

    def stated(self, promised: Guarantee) -> Guarantee:
        """What may be said of a run that began so."""
        if self.public:
            promised = replace(promised, assumptions=(*promised.assumptions, REST if self.lineage else DECLARED))
        if not self.past:
            return promised
        assumed = [*promised.assumptions, *(said for one in self.promises for said in one.assumptions), IN_ADVANCE]
        excluded = [*promised.excludes, *(said for one in self.promises for said in one.excludes)]
        both = replace(
            promised,
            covers=(*promised.covers, INCLUDED),
            excludes=tuple(dict.fromkeys(excluded)),
            assumptions=tuple(dict.fromkeys(assumed)),
            seeded=promised.seeded or any(one.seeded for one in self.promises),  # noise that anybody can make again
        )
        if self.apart is None:
            return both
        total, why = promised.epsilon + self.added, "the epsilons and deltas of this run and of those before it, added"
        if math.isinf(total):
            return replace(both, status="none", epsilon=math.inf, why=self.apart.why or promised.why)
        return replace(both, epsilon=total, delta=self.delta, accountant="sum", why=why, order=None, rdp=None, pld=None)


def begin(
    initial: Initial,
    *,
    adaptive: bool,
    size: int | None,
    adjacency: str | None,
    budget: Budget | None,
    delta: float,
    already: tuple[Event, ...],
    unit: Unit = "example",
) -> Beginning:
    """What a run may ask of the planner when the budget is for it and for its starting weights together.

    Events that were fixed in advance compose with those of the run. A filter's do not: there each side gets half of
    delta, and epsilons are added.

    >>> begin("public", adaptive=False, size=100, adjacency=None, budget=None, delta=1e-5, already=()).adjacency
    'add-or-remove'
    """
    relation = adjacency_of(size, adjacency)
    if initial is None or initial == "public":
        return Beginning(Lineage(), already, budget, delta, relation, public=initial is not None)
    each: list[object] = [*initial] if isinstance(initial, list | tuple) else [initial]
    runs = [one for one in each if one != "public"]
    public, lineage, promises = "public" in each, _lineage_of(runs), _promises_of(runs)
    if lineage.others and not public:
        raise SettingError(
            "the starting weights come from other runs too, which were declared to owe nothing to the examples of a "
            "run in between: add those that had these examples (initial=[one, other]), or say initial=[one, 'public'] "
            "if the rest owes nothing to these examples either"
        )
    past = lineage.spending
    if past and past != UNKNOWN_SPENDING:
        refuse_mixed(past.unit, unit)
    if relation == "add-or-remove" and not past.declared:
        if adjacency is not None:
            raise SettingError(
                "the run that made the starting weights counted its examples: both together cannot promise "
                "add-or-remove. Leave out adjacency, and the promise is zero-out"
            )
        relation = "zero-out"
    if not adaptive and not past.filters:
        _refuse_spent(past.price(delta, relation), budget)
        both = (*past.each(), *already)
        return Beginning(lineage, both, budget, delta, relation, public=public, promises=promises)
    before = past.price(delta / 2, relation)
    _refuse_spent(before, budget)
    if budget is not None:
        budget = replace(budget, epsilon=budget.epsilon - before.epsilon, delta=delta / 2)
    return Beginning(lineage, already, budget, delta, relation, apart=before, public=public, promises=promises)


def _refuse_spent(before: Price, budget: Budget | None) -> None:
    if budget is not None and before.epsilon >= budget.epsilon:
        cost = "infinity" if math.isinf(before.epsilon) else round_up(before.epsilon)
        raise SettingError(
            f"the starting weights cost epsilon {cost} of these examples already, and epsilon {budget.epsilon:g} is "
            "for both together: ask for more, or start from weights that owe nothing to them"
        )


def _lineage_of(each: Sequence[object]) -> Lineage:
    """The runs that are said to have made the starting weights, each once, however many ways lead to it."""
    found = [getattr(one, "lineage", None) for one in each]
    known = [one for one in found if isinstance(one, Lineage)]
    if not known or len(known) < len(found):
        raise SettingError(
            f"initial is {each[0] if len(each) == 1 else each!r}: say 'public', or give what the starting weights came "
            "with: a Trained or a Run, or a list of them where several runs made the parts"
        )
    return reduce(Lineage.__or__, known)


def _promises_of(each: Sequence[object]) -> tuple[Guarantee, ...]:
    """What the runs state, as far as they do: a `Trained` has it, a `Run` is asked."""
    found = (getattr(one, "guarantee", None) for one in each)
    stated = (one() if callable(one) else one for one in found)
    return tuple(one for one in stated if isinstance(one, Guarantee))


def marked(model: nn.Module) -> Lineage:
    """The runs that a model's own parts tell of; what cannot be read is not known.

    >>> marked(nn.Linear(2, 2))
    Lineage(runs={}, others={})
    """
    texts = {str(vars(module)[MARK]) for module in model.modules() if MARK in vars(module)}
    return reduce(Lineage.__or__, map(_read, sorted(texts)), Lineage())


def _read(text: str) -> Lineage:
    try:
        return Lineage.from_json(json.loads(text))
    except (DataError, ValueError):
        return UNKNOWN_LINEAGE


def mark(model: nn.Module, lineage: Lineage, *, everything: bool = False) -> None:
    """Write into every module with something to train which runs its weights come from, and what they cost.

    With `everything`, into frozen ones too, and into those that hold released numbers in buffers. Runs that are not
    among them and made what is frozen were declared public: that is kept, since it was said of these examples alone.
    """
    said = json.dumps(lineage.to_json())
    for module in model.modules():
        held = any(part.requires_grad for part in module.parameters())
        if held or (everything and len(module.state_dict()) > 0):
            vars(module)[MARK] = said
        elif MARK in vars(module):
            vars(module)[MARK] = json.dumps(_among(_read(vars(module)[MARK]), lineage).to_json())


def _among(before: Lineage, lineage: Lineage) -> Lineage:
    """What a frozen part comes from, as a run sees it that counts only those of its lineage."""
    runs = {run: cost for run, cost in before.runs.items() if run in lineage.runs}
    return Lineage(runs, {run: cost for run, cost in {**before.others, **before.runs}.items() if run not in runs})


def refuse_trained_on(model: nn.Module, lineage: Lineage) -> None:
    """Refuse to speak for weights that a later run has trained on: they cost more than is said."""
    if lineage != UNKNOWN_LINEAGE and marked(model).runs.keys() - lineage.runs.keys():
        raise SettingError(
            "another run has trained this model since: this guarantee is not for its weights any more. Save what came "
            "of the last run, or save before training on"
        )


def declared_public(model: nn.Module, beginning: Beginning, run: str = "") -> Lineage:
    """The runs that made the weights beside those that count; refuses to train weights again as if they were new.

    `beginning` says what they are, `run` is who asks.

    >>> net, new = nn.Linear(2, 2), Beginning(Lineage(), (), None, 1e-5, "zero-out")
    >>> declared_public(net, new)
    Lineage(runs={}, others={})
    >>> mark(net, Lineage({"a run": Spending()}))
    >>> list(declared_public(net, replace(new, public=True)).others)
    ['a run']
    >>> declared_public(net, new)
    Traceback (most recent call last):
    reticent.errors.SettingError: a private run has trained this model already: ...
    """
    carried, counted = marked(model) | beginning.lineage, {run, *beginning.lineage.runs}
    rest = {one: cost for one, cost in {**carried.others, **carried.runs}.items() if one not in counted}
    if beginning.public or not rest:
        return Lineage(others=rest)
    if not beginning.lineage:
        raise SettingError(
            "a private run has trained this model already: say initial=trained (what that run gave) and the guarantee "
            "is for both, or initial='public' if its weights owe nothing to these examples, or start from a new model"
        )
    raise SettingError(
        "the weights of this model come from another run than the one given as initial, or from several: give what "
        "came of the last run that trained all of it, or of each that trained a part (initial=[one, other]), or say "
        "initial='public' if they owe nothing to these examples ([one, 'public'], if all but one does)"
    )
