"""Stages that choose numbers during the run: a Renyi filter pays for them, its order fixed beforehand."""

from __future__ import annotations

from typing import Protocol, Self, runtime_checkable

from reticent.accounting import Budget, RenyiFilter
from reticent.inside import Dials, Task, Vault


@runtime_checkable
class Adaptive(Protocol):
    """A stage whose later releases depend on earlier ones."""

    def start(self, dials: Dials, rounds: int, budget: Budget) -> tuple[Self, Dials, RenyiFilter]:
        """The stage with all it fixes in advance, the dials to begin with, and the filter every release must pass."""
        ...


@runtime_checkable
class Listening(Protocol):
    """A control that asks the vault before a round, through the door, and turns the dials by the answer."""

    def listen(self, dials: Dials, vault: Vault, task: Task) -> Dials:
        """The dials from this round on."""
        ...
