"""Stages that choose numbers during the run: a Renyi filter pays for them, its order fixed beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from reticent.accounting import Budget, RenyiFilter
from reticent.inside import Dials, Task, Vault


@dataclass(frozen=True, eq=False)
class Started:
    """What an adaptive stage fixes before the run: itself, the first dials, the filter, and how many rounds at most."""

    stage: Adaptive
    dials: Dials
    filter: RenyiFilter
    rounds: int


@runtime_checkable
class Adaptive(Protocol):
    """A stage whose later releases depend on earlier ones."""

    def start(self, dials: Dials, rounds: int, budget: Budget) -> Started:
        """All that is fixed in advance."""
        ...


@runtime_checkable
class Listening(Protocol):
    """A control that asks the vault before a round, through the door, and turns the dials by the answer."""

    def listen(self, dials: Dials, vault: Vault, task: Task) -> Dials:
        """The dials from this round on."""
        ...
