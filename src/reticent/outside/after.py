"""Late selection: an open gate first, another one after a number of rounds fixed in advance."""

from __future__ import annotations

from dataclasses import dataclass

from reticent.accounting import Event
from reticent.errors import require
from reticent.inside import RoundSettings
from reticent.outside.adaptive import Adaptive
from reticent.outside.gates import Charge, Gate, Open, Outcome, Proof, Proposal


@dataclass(frozen=True)
class After:
    """Every update is kept in the first `rounds` rounds; from then on `gate` decides."""

    rounds: int
    gate: Gate

    def __post_init__(self) -> None:
        require(self.rounds >= 0, f"after must be 0 or more rounds, not {self.rounds}")
        require(
            not isinstance(self.gate, Adaptive),
            f"{type(self.gate).__name__} plans the whole budget and cannot begin later",
        )

    @property
    def candidates(self) -> int:
        """As many as the later gate tries."""
        return self.gate.candidates

    @property
    def proof(self) -> Proof:
        """Those of the later gate."""
        return self.gate.proof

    def charge(self, gradient: Event, settings: RoundSettings) -> Charge:
        """A plain release first, the gate's own charge later."""
        return self._now(settings).charge(gradient, settings)

    def settle(self, proposal: Proposal) -> Outcome:
        """As the gate of this round says."""
        return self._now(proposal.settings).settle(proposal)

    def _now(self, settings: RoundSettings) -> Gate:
        return Open() if settings.number < self.rounds else self.gate
