"""The same releases in fewer words: nested draws and compositions written as the plain events they equal."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping

from reticent.accounting.events import (
    BinInTurn,
    Composed,
    Concentrated,
    Event,
    Gaussian,
    Laplace,
    NoisyMax,
    OnceIn,
    PartInTurn,
    Repeated,
    RoundOfStream,
    Subsampled,
    Tally,
)
from reticent.errors import SettingError

NOTHING = Composed(())


def tally(events: Tally | Iterable[Event]) -> dict[Event, int]:
    """Events with how often each happened; compositions are taken apart, equal events merged.

    >>> tally([Gaussian(1.0), Composed((Gaussian(1.0), Gaussian(2.0)))])
    {Gaussian(noise_multiplier=1.0): 2, Gaussian(noise_multiplier=2.0): 1}
    """
    return _in_turn(_apart(events))


def _apart(events: Tally | Iterable[Event]) -> Counter[Event]:
    """The events of which compositions are made; turns are looked at when all of them are there."""
    counts: Counter[Event] = Counter()
    for event, count in events.items() if isinstance(events, Mapping) else Counter(events).items():
        if count < 0:
            raise SettingError(f"{event} is counted {count} times: counts are 0 or more")
        simple = simplify(event)
        if isinstance(simple, Composed):
            for part, times in _apart(simple.parts).items():
                counts[part] += times * count
        elif isinstance(simple, Repeated):
            for part, times in _apart([simple.inner]).items():
                counts[part] += times * simple.count * count
            counts = +counts
        elif count:
            counts[simple] += count
    return counts


def _in_turn(counts: Counter[Event]) -> dict[Event, int]:
    """The tally with turns of parts, of bins, or of streams, as what they tell of an example, which is in one of them.

    Turns begin with part 0, so that in every run, and in several together, no part has had more turns than 0, and an
    example that is in different parts of two runs no more than that. Where another had more, all turns are counted. So
    it is with bins, into which examples fall anew when it is the turn of bin 0; and with the rounds of a stream, all of
    which are paid for by the first.

    >>> tally({PartInTurn(0, 2, Gaussian(1.0)): 3, PartInTurn(1, 2, Gaussian(1.0)): 2})
    {Gaussian(noise_multiplier=1.0): 3}
    """
    found: Counter[Event] = Counter()
    turns: dict[tuple[int, Event], Counter[int]] = {}
    for event, count in counts.items():
        if isinstance(event, PartInTurn):
            turns.setdefault((event.parts, event.inner), Counter())[event.part] += count
        elif isinstance(event, BinInTurn):
            turns.setdefault((-1, OnceIn(event.turns, event.inner)), Counter())[event.turn] += count
        elif isinstance(event, RoundOfStream):
            turns.setdefault((-1 - event.rounds, event.inner), Counter())[event.number] += count
        else:
            found[event] += count
    for (_, inner), had in turns.items():
        most = had[0] if had[0] == max(had.values()) else had.total()
        for event, count in tally([inner]).items():
            found[event] += count * most
    return dict(found)


def simplify(event: Event) -> Event:
    """An event with exactly the same price, in its plainest form.

    Several Gaussians on one draw are one Gaussian whose precisions add up: a weighted mean of the answers tells as much
    as all of them. A draw from a draw is one draw. A Poisson draw makes an epsilon-DP choice a cheaper one (Balle,
    Barthe & Gaboardi 2018, theorem 8): log(1 + rate (exp(epsilon) - 1)).

    >>> simplify(Subsampled(0.5, Subsampled(0.2, Composed((Gaussian(2.0), Gaussian(2.0))))))
    Subsampled(rate=0.1, inner=Gaussian(noise_multiplier=1.4142...))
    """
    match event:
        case Gaussian(math.inf) | Laplace(math.inf) | NoisyMax(0) | Concentrated(0) | Subsampled(0, _):
            return NOTHING
        case Subsampled(1, inner) | OnceIn(1, inner):
            return simplify(inner)
        case Subsampled(rate, Subsampled(other, inner)):
            return simplify(Subsampled(rate * other, inner))
        case Subsampled(rate, Composed(parts)):
            return _one_draw(rate, parts)
        case Subsampled(rate, NoisyMax(epsilon)):
            return NoisyMax(math.log1p(rate * math.expm1(epsilon)))
        case Subsampled(_, inner) if simplify(inner) == NOTHING:
            return NOTHING
        case _:
            return event


def _one_draw(rate: float, parts: tuple[Event, ...]) -> Event:
    """Several releases on the same draw: known for Gaussians only."""
    precision = 0.0
    for part in map(simplify, parts):
        if not isinstance(part, Gaussian):
            return Subsampled(rate, Composed(parts))
        precision += part.noise_multiplier**-2 if part.noise_multiplier else math.inf
    return Subsampled(rate, Gaussian(precision**-0.5)) if precision else NOTHING
