"""A second opinion: the price of plain events by dp-accounting, which shares no code with what priced them first."""

from __future__ import annotations

import math
from functools import lru_cache

from reticent.accounting import Event, FixedSize, Gaussian, Guarantee, Laplace, Subsampled, Truncated
from reticent.accounting.events import Tally

TOLERANCE = 0.01
"""Both round upwards, each on a grid of its own: in what was measured they lie within 0.1 % of each other."""
FINEST = 1e-5
"""Step of dp-accounting's grid: one of h adds up to h, and n h^2 / 2 for n releases, of which 0.1 % is wanted."""
MANY = 64
"""Different events; each takes dp-accounting a transform, so that more of them would take minutes."""


def second_opinion(events: Tally, said: Guarantee) -> float | str:
    """The epsilon of events by dp-accounting's loss distributions, or the reason why it cannot say.

    >>> round(second_opinion({Gaussian(2.0): 1}, Guarantee("proved", 2.0, 1e-5)), 2)
    1.99
    >>> second_opinion({Gaussian(2.0): 1}, Guarantee("proved", 2.0, 1e-5, "replace"))
    'dp-accounting does not price replacing an example of a Poisson draw'
    """
    strange = next((event for event in events if not _plain(event)), None)
    if isinstance(strange, FixedSize | Truncated):
        return f"dp-accounting has a looser price for {type(strange).__name__}, which says nothing of this one"
    if strange is not None:
        return f"dp-accounting does not know {type(strange).__name__}"
    if said.adjacency == "replace":
        return "dp-accounting does not price replacing an example of a Poisson draw"
    if len(events) > MANY:
        return f"{len(events)} different events would take dp-accounting minutes"
    wanted = min(said.epsilon / 1000, math.sqrt(1e-3 * said.epsilon / max(1, sum(events.values()))))
    return _by_library(frozenset(events.items()), said.delta, max(FINEST, wanted))


def _plain(event: Event) -> bool:
    match event:
        case Subsampled(_, Gaussian(noise)) | Gaussian(noise) | Laplace(noise):
            return noise > 0
    return False


@lru_cache(maxsize=256)
def _by_library(events: frozenset[tuple[Event, int]], delta: float, step: float) -> float:
    from dp_accounting import dp_event  # slow to import
    from dp_accounting.pld.pld_privacy_accountant import PLDAccountant
    from dp_accounting.privacy_accountant import NeighboringRelation

    accountant = PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE, value_discretization_interval=step)
    for event, count in sorted(events, key=repr):
        match event:
            case Gaussian(noise):
                accountant.compose(dp_event.GaussianDpEvent(noise), count)
            case Laplace(noise):
                accountant.compose(dp_event.LaplaceDpEvent(noise), count)
            case Subsampled(rate, Gaussian(noise)):
                accountant.compose(dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(noise)), count)
    return float(accountant.get_epsilon(delta))
