"""Lineage: the runs that made some weights, each by its id, so that none is counted twice and none is left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce

from reticent.accounting.event_json import Json
from reticent.accounting.spending import NOTHING_SPENT, UNKNOWN_SPENDING, Spending
from reticent.errors import DataError

OTHERS = "declared public"
"""The name under which the others stand in JSON, beside ids."""


@dataclass(frozen=True)
class Lineage:
    """What each run has released itself, without what its starting weights had cost before.

    >>> from reticent.accounting.events import Gaussian
    >>> first, second = (Lineage({run: Spending({Gaussian(4.0): 1})}) for run in ("a", "b"))
    >>> ((first | second) | (second | first)).spending.events
    {Gaussian(noise_multiplier=4.0): 2}
    """

    runs: Mapping[str, Spending] = field(default_factory=dict)
    others: Mapping[str, Spending] = field(default_factory=dict)
    """Runs that made the weights too, and were declared to owe nothing to the examples: to these, not to all."""

    def __or__(self, other: Lineage) -> Lineage:
        """The runs of both, each once; one that counts for either counts."""
        mine, theirs = ({**one.others, **one.runs} for one in (self, other))
        for run in mine.keys() & theirs.keys():
            if mine[run] != theirs[run]:
                raise DataError(f"run {run} tells of two different spendings: one of its cards was changed")
        runs = {**self.runs, **other.runs}
        return Lineage(runs, {run: cost for run, cost in {**mine, **theirs}.items() if run not in runs})

    def __bool__(self) -> bool:
        return bool(self.runs)

    @property
    def spending(self) -> Spending:
        """All that was released of the same examples."""
        return reduce(Spending.__add__, self.runs.values(), NOTHING_SPENT)

    def to_json(self) -> dict[str, Json]:
        """Plain JSON data, always in the same order."""
        others: dict[str, Json] = {run: self.others[run].to_json() for run in sorted(self.others)}
        told: dict[str, Json] = {run: self.runs[run].to_json() for run in sorted(self.runs)}
        if others:
            told[OTHERS] = others
        return told

    @staticmethod
    def from_json(data: object) -> Lineage:
        """What `to_json` wrote.

        >>> Lineage.from_json({}) == Lineage()
        True
        """
        if not isinstance(data, dict):
            raise DataError(f"this tells of no runs of ours: {str(data)[:80]}")
        told: list[object] = [{run: spent for run, spent in data.items() if run != OTHERS}, data.get(OTHERS, {})]
        return Lineage(*map(_spendings, told))


def _spendings(data: object) -> dict[str, Spending]:
    if not isinstance(data, dict):
        raise DataError(f"this tells of no runs of ours: {str(data)[:80]}")
    return {str(run): Spending.from_json(spent) for run, spent in data.items()}


UNKNOWN_LINEAGE = Lineage({"unknown": UNKNOWN_SPENDING})
