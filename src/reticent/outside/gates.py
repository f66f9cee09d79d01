"""Gates: keep a candidate update or drop it, and what the choice costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from torch import Tensor

from reticent.accounting import Event
from reticent.accounting.claims.claimed import Orders, PaperClaim
from reticent.inside import Query, RoundSettings, Sealed, Task, Vault


@dataclass(frozen=True)
class Charge:
    """What a round writes into the ledger.

    Without `covers`, every release pays for itself, and `events` lists them. With `covers`, one event pays for the
    bundle of all the releases listed there, and the outcome stays private until it is kept.
    """

    events: tuple[Event, ...]
    covers: tuple[Event, ...] = ()


@dataclass(frozen=True)
class Proof:
    """On which route a gate's charge is proved, what a round of it counts, and what the proof takes for granted."""

    route: str = ""
    assumptions: tuple[str, ...] = ()
    counts: str = "steps"


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


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a gate decided: all that the loop does about it."""

    kept: bool
    place: Tensor | None = None
    """Where the parameters go instead of where the optimizer put them."""
    noise_multiplier: float | None = None
    """The noise of the rounds to come, where it changes; public."""
    max_grad_norm: float | None = None
    """The clip norm of the rounds to come, where it changes; public."""
    state_stays: bool = False
    """Whether the optimizer remembers a dropped candidate's gradient; only where every attempt is charged in full."""


class Gate(Protocol):
    """Promise: `charge` lists what a round releases, whatever the data."""

    @property
    def candidates(self) -> int:
        """How many candidates one round may try until one is kept: 1, unless rejections stay hidden."""
        ...

    @property
    def proof(self) -> Proof:
        """How the charge is proved."""
        ...

    def charge(self, gradient: Event, settings: RoundSettings) -> Charge:
        """What a round costs whose gradient release is `gradient`."""
        ...

    def settle(self, proposal: Proposal) -> Outcome:
        """What becomes of the proposal."""
        ...


@dataclass(frozen=True, kw_only=True)
class Releases:
    """What a paper's charging rule looks at: the gradient's event, a round's settings, and what else was released."""

    gradient: Event
    settings: RoundSettings
    rounds: int
    """How many are planned."""
    kept: int | None
    """How many updates were kept; None before the run: as many as can be expected at best."""
    delta: float
    already: Sequence[Event] = ()
    orders: Orders = "paper"

    def kept_at_best(self, share: float = 1.0) -> int:
        """How many were kept, or the largest share of the rounds that may be."""
        return self.kept if self.kept is not None else round(self.rounds * share)


@runtime_checkable
class Claiming(Protocol):
    """A stage whose paper states an epsilon by a rule of its own."""

    def claim(self, releases: Releases) -> PaperClaim | None:
        """What the paper would say; never a guarantee."""
        ...


@dataclass(frozen=True)
class Open:
    """Every update is kept."""

    proof: ClassVar[Proof] = Proof()

    @property
    def candidates(self) -> int:
        """One."""
        return 1

    def charge(self, gradient: Event, settings: RoundSettings) -> Charge:  # noqa: ARG002 - only the gradient is paid for
        """The gradient's own event."""
        return Charge((gradient,))

    def settle(self, proposal: Proposal) -> Outcome:  # noqa: ARG002 - nothing is asked
        """Yes."""
        return Outcome(kept=True)
