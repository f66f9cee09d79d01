"""Gates: keep a proposed update or drop it, and what the choice costs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

from torch import Tensor

from reticent.accounting import Event
from reticent.accounting.claims.claimed import PaperClaim
from reticent.inside import Query, RoundSettings, Sealed, Task, Vault


@dataclass(frozen=True)
class Charge:
    """What a round writes into the ledger.

    Without `covers`, every release pays for itself, and `events` lists them. With `covers`, one event pays for all the
    releases listed there, and the outcome stays private until it is kept.
    """

    events: tuple[Event, ...]
    covers: tuple[Event, ...] = ()


@dataclass(frozen=True)
class Proof:
    """On which route a gate's charge is proved, and what the proof takes for granted."""

    route: str = ""
    assumptions: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Proposal:
    """A candidate update that is in the model already, and all a gate may know to judge it."""

    vault: Vault
    task: Task
    settings: RoundSettings
    query: Query
    sealed: Sealed
    released: Tensor
    before: Tensor
    kept: int
    rejections: int
    """How many were dropped in a row before this one."""
    coin: float
    changes: dict[str, Any] = field(default_factory=dict)
    """RoundSettings the gate wants changed from the next round on; public."""


class Gate(Protocol):
    """Promise: `charge` lists what a round releases, whatever the data."""

    @property
    def attempts(self) -> int:
        """How many candidates one round may try until one is kept: 1, unless rejections stay hidden."""
        ...

    @property
    def proof(self) -> Proof:
        """How the charge is proved."""
        ...

    def charge(self, gradient: Event, settings: RoundSettings) -> Charge:
        """What a round costs whose gradient release is `gradient`."""
        ...

    def settle(self, proposal: Proposal) -> bool:
        """Whether the proposal is kept."""
        ...


@runtime_checkable
class Claiming(Protocol):
    """A gate whose paper charges otherwise than we can prove."""

    def claim(self, gradient: Event, settings: RoundSettings, kept: int, delta: float) -> PaperClaim | None:
        """What the paper would say after so many kept updates; never a guarantee."""
        ...


@dataclass(frozen=True)
class Open:
    """Every update is kept."""

    proof: ClassVar[Proof] = Proof()

    @property
    def attempts(self) -> int:
        """One."""
        return 1

    def charge(self, gradient: Event, settings: RoundSettings) -> Charge:  # noqa: ARG002 - only the gradient is paid for
        """The gradient's own event."""
        return Charge((gradient,))

    def settle(self, proposal: Proposal) -> bool:  # noqa: ARG002 - nothing is asked
        """Yes."""
        return True
