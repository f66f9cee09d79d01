"""Pricing again: what the events on a card cost, by our accountant and by another one."""

from __future__ import annotations

import math
from collections import Counter

from reticent.accounting.guarantee import round_up
from reticent.certificate.card import Card
from reticent.certificate.independent import TOLERANCE, second_opinion
from reticent.certificate.report import Check
from reticent.errors import ReticentError

SAME = 1e-6
"""By which share two prices of the same events may differ: other machines round otherwise."""

ADDED = "; the epsilons of several runs were added, and the card knows the events of the last only"


def check_plan(card: Card) -> Check:
    """What was released is what was planned."""
    charged = card.charged
    if charged is None:
        return Check("plan", True, "nothing was charged", looked=False)
    made = sum(charged.released.values())
    if charged.planned is None:
        return Check("plan", True, f"{made} releases were chosen during the run, within a filter", looked=False)
    planned, released = Counter(charged.planned), Counter(charged.released)
    fits = released == planned if charged.over else released <= planned
    found = f"{made} of {sum(planned.values())} planned releases were made"
    if fits:
        return Check("plan", True, found)
    return Check("plan", False, f"{found}, and they are not those that were planned", "do not rely on the guarantee")


def check_price(card: Card) -> Check:
    """The events cost no more than the guarantee says."""
    said, charged = card.guarantee, card.charged
    if said.status != "proved":
        return Check("price", True, "no proved epsilon is claimed", looked=False)
    remedy = "do not quote this epsilon: it is not what these events cost"
    if charged is None:
        return Check("price", False, "the card does not say what was charged", "save what `fit` gave, not a copy of it")
    try:
        cost = charged.cost(said)
    except (ArithmeticError, ReticentError, ValueError) as error:
        return Check("price", False, f"the events cannot be priced: {error}", remedy)
    ok = cost <= said.epsilon * (1 + SAME)
    found = f"priced again, the events cost epsilon {_up(cost)}, the card says {_up(said.epsilon)}"
    found += ADDED if said.accountant == "sum" else ""
    return Check("price", ok, found, "" if ok else remedy)


def check_second_opinion(card: Card) -> Check:
    """Another accountant finds no more than the guarantee says."""
    said, charged = card.guarantee, card.charged
    name = "second opinion"
    if said.status != "proved" or charged is None:
        return Check(name, True, "there is nothing to price", looked=False)
    if charged.planned is None:
        return Check(name, True, "dp-accounting has no filter for what is chosen during a run", looked=False)
    try:
        found = second_opinion(charged.priced(), said)
    except (ArithmeticError, MemoryError, ValueError) as error:
        found = f"dp-accounting could not price the events: {error}"
    if isinstance(found, str):
        return Check(name, True, found, looked=False)
    ok = found <= said.epsilon * (1 + TOLERANCE)
    says = f"dp-accounting finds epsilon {_up(found)}, the card says {_up(said.epsilon)}; {TOLERANCE:.0%} may differ"
    return Check(name, ok, says, "" if ok else "do not quote this epsilon, and tell us: the accountants disagree")


def _up(epsilon: float) -> str:
    return round_up(epsilon, 4) if math.isfinite(epsilon) else "infinite"
