"""Which method wins where: comparisons at equal proved epsilon, each method against the better of the two baselines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal

from reticent.report.summary import Spread

BASELINES = ("dpsgd", "dpadam")
Record = Mapping[str, Any]
Verdict = Literal["wins", "ties", "loses", "unknown"]


@dataclass(frozen=True)
class Contest:
    """The methods that one comparison ran on one dataset at one budget."""

    data: str
    model: str
    epsilon: float
    baseline: str
    accuracy: Spread
    """Of the baseline, in percent."""
    gains: Mapping[str, Spread]
    """Over the baseline in points, seed by seed."""


def verdict(gain: Spread) -> Verdict:
    """What the seeds allow to say.

    >>> verdict(Spread.of([0.4, 0.5, 0.6])), verdict(Spread.of([-0.4, 0.5, 0.6])), verdict(Spread.of([0.4]))
    ('wins', 'ties', 'unknown')
    """
    if gain.kind != "t95":
        return "unknown"
    return "wins" if gain.low > 0 else "loses" if gain.high < 0 else "ties"


def contests(records: Iterable[Record]) -> list[Contest]:
    """One for each comparison (`reticent compare`), dataset and budget with more than a baseline in it."""
    groups: dict[tuple[str, str, str, float], dict[str, dict[int, float]]] = {}
    for record in records:
        if not _counts(record):
            continue
        place = (record["command"], record["data"], record["model"], record["target_epsilon"])
        groups.setdefault(place, {}).setdefault(record["label"], {})[record["seed"]] = 100 * record["accuracy"]
    found = (_contest(place[1:], methods) for place, methods in groups.items())
    return sorted(filter(None, found), key=lambda one: (one.data, one.model, one.epsilon))


def _counts(record: Record) -> bool:
    """Whether a run was compared, and its epsilon is proved and the one that was asked for."""
    compared = str(record.get("command", "")).startswith("reticent compare")
    budget = record.get("target_epsilon")
    proved = record.get("epsilon")
    return compared and budget is not None and proved is not None and proved <= budget * (1 + 1e-6)


def _contest(place: tuple[str, str, float], methods: Mapping[str, Mapping[int, float]]) -> Contest | None:
    there = [name for name in BASELINES if name in methods]
    if not there or len(methods) == 1:
        return None
    best = max(there, key=lambda name: fmean(methods[name].values()))
    base = methods[best]
    gains = {
        name: Spread.of([scores[seed] - base[seed] for seed in sorted(scores.keys() & base.keys())])
        for name, scores in sorted(methods.items())
        if name != best and scores.keys() & base.keys()
    }
    data, model, epsilon = place
    return Contest(data, model, epsilon, best, Spread.of(list(base.values())), gains)


def as_map(found: Sequence[Contest]) -> Iterator[list[str]]:
    """The map in lines: one for each method, with its gain at each place; `*` where the seeds are sure of a sign."""
    yield ["", *(f"{one.data}, {one.model}, epsilon {one.epsilon:g}" for one in found)]
    yield ["baseline", *(f"{one.baseline} {one.accuracy.mean:.2f} %" for one in found)]
    for name in methods_of(found):
        yield [name, *(_said(one.gains.get(name)) for one in found)]


def methods_of(found: Sequence[Contest]) -> list[str]:
    """Every method of the map once."""
    return sorted({name for one in found for name in one.gains})


def _said(gain: Spread | None) -> str:
    if gain is None:
        return ""
    sure = "*" * (verdict(gain) in ("wins", "loses"))
    return f"{gain.mean:+.2f}{sure}"
