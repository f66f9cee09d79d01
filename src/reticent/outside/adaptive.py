"""Stages that choose numbers during the run: a Renyi filter pays for them, its order fixed beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from reticent.accounting import Budget, Event, RenyiFilter
from reticent.inside import RoundSettings, Task, Vault


@dataclass(frozen=True, eq=False)
class Started:
    """What an adaptive stage fixes before the run: itself, the first settings, the filter, the most rounds."""

    stage: Adaptive
    settings: RoundSettings
    filter: RenyiFilter
    rounds: int


@runtime_checkable
class Adaptive(Protocol):
    """A stage whose later releases depend on earlier ones."""

    def start(self, settings: RoundSettings, rounds: int, budget: Budget, before: tuple[Event, ...] = ()) -> Started:
        """All that is fixed in advance, after what was released of the same examples before."""
        ...


@runtime_checkable
class Listening(Protocol):
    """A control that asks the vault before a round, through the door, and turns the settings by the answer."""

    def listen(self, settings: RoundSettings, vault: Vault, task: Task) -> RoundSettings:
        """The settings from this round on."""
        ...
