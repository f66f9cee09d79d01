"""Lineage: the runs that made some weights, each by its id, so that none is counted twice and none is left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce

from reticent.accounting.events import Json
from reticent.accounting.spending import NOTHING_SPENT, UNKNOWN_SPENDING, Spending
from reticent.errors import DataError


@dataclass(frozen=True)
class Lineage:
    """What each run has released itself, without what its starting weights had cost before.

    >>> from reticent.accounting.events import Gaussian
    >>> first, second = (Lineage({run: Spending({Gaussian(4.0): 1})}) for run in ("a", "b"))
    >>> ((first | second) | (second | first)).spending.events
    {Gaussian(noise_multiplier=4.0): 2}
    """

    runs: Mapping[str, Spending] = field(default_factory=dict)

    def __or__(self, other: Lineage) -> Lineage:
        """The runs of both, each once."""
        for run in self.runs.keys() & other.runs.keys():
            if self.runs[run] != other.runs[run]:
                raise DataError(f"run {run} tells of two different spendings: one of its cards was changed")
        return Lineage({**self.runs, **other.runs})

    def __bool__(self) -> bool:
        return bool(self.runs)

    @property
    def spending(self) -> Spending:
        """All that was released of the same examples."""
        return reduce(Spending.__add__, self.runs.values(), NOTHING_SPENT)

    def to_json(self) -> dict[str, Json]:
        """Plain JSON data, always in the same order."""
        return {run: self.runs[run].to_json() for run in sorted(self.runs)}

    @staticmethod
    def from_json(data: object) -> Lineage:
        """What `to_json` wrote.

        >>> Lineage.from_json({}) == Lineage()
        True
        """
        if not isinstance(data, dict):
            raise DataError(f"this tells of no runs of ours: {str(data)[:80]}")
        return Lineage({str(run): Spending.from_json(spent) for run, spent in data.items()})


UNKNOWN_LINEAGE = Lineage({"unknown": UNKNOWN_SPENDING})
