"""Events as JSON, as they stand in ledgers: by the names of their classes and fields."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TypeAlias

from reticent.accounting.events import (
    AnnealedRelease,
    BestTrial,
    BinInTurn,
    Composed,
    Concentrated,
    Event,
    FixedSize,
    Gaussian,
    Laplace,
    NoisyMax,
    OnceIn,
    PartInTurn,
    Repeated,
    RoundOfStream,
    SelectiveAttempt,
    SelectiveRelease,
    Subsampled,
    Truncated,
    Unbounded,
)

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""What JSON can hold."""

KINDS: dict[str, type[Event]] = {
    kind.__name__: kind
    for kind in (
        Gaussian,
        Laplace,
        NoisyMax,
        Subsampled,
        PartInTurn,
        FixedSize,
        Truncated,
        BinInTurn,
        OnceIn,
        RoundOfStream,
        Composed,
        Repeated,
        BestTrial,
        SelectiveAttempt,
        SelectiveRelease,
        AnnealedRelease,
        Concentrated,
        Unbounded,
    )
}


def to_json(event: Event) -> dict[str, Json]:
    """An event as plain JSON data.

    >>> to_json(Subsampled(0.1, Gaussian(2.0)))
    {'event': 'Subsampled', 'rate': 0.1, 'inner': {'event': 'Gaussian', 'noise_multiplier': 2.0}}
    """
    data: dict[str, Json] = {"event": type(event).__name__}
    for field in dataclasses.fields(event):
        value = getattr(event, field.name)
        if isinstance(value, tuple):
            data[field.name] = [to_json(part) for part in value]
        else:
            data[field.name] = to_json(value) if isinstance(value, Event) else value
    return data


def from_json(data: Mapping[str, Json]) -> Event:
    """The event that `to_json` wrote; what is not known here costs infinity, and says why.

    >>> from_json(to_json(Composed((Gaussian(1.0), Laplace(2.0)))))
    Composed(parts=(Gaussian(noise_multiplier=1.0), Laplace(noise_multiplier=2.0)))
    """
    name = str(data["event"])
    kind = KINDS.get(name)
    if kind is None:
        return Unbounded(f"unknown event {name!r}: this Reticent has no proof for it")
    unknown = data.keys() - {"event", *(field.name for field in dataclasses.fields(kind))}
    if unknown:
        return Unbounded(f"unknown field {min(unknown)!r} of {name}: this Reticent has no proof for it")
    make: Callable[..., Event] = kind
    return make(**{field: _part(value) for field, value in data.items() if field != "event"})


def _part(value: Json) -> object:
    if isinstance(value, list):
        return tuple(map(_part, value))
    return from_json(value) if isinstance(value, dict) else value
