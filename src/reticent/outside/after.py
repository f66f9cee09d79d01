"""Late selection: an open gate first, another one after a number of rounds fixed in advance."""

from __future__ import annotations

from dataclasses import dataclass

from reticent.accounting import Event
from reticent.inside import Dials
from reticent.outside.gates import Charge, Gate, Open, Proposal, Terms


@dataclass(frozen=True)
class After:
    """Every update is kept in the first `rounds` rounds; from then on `gate` decides."""

    rounds: int
    gate: Gate

    @property
    def attempts(self) -> int:
        """As many as the later gate tries."""
        return self.gate.attempts

    @property
    def terms(self) -> Terms:
        """Those of the later gate."""
        return self.gate.terms

    def charge(self, gradient: Event, dials: Dials) -> Charge:
        """A plain release first, the gate's own charge later."""
        return self._now(dials).charge(gradient, dials)

    def settle(self, proposal: Proposal) -> bool:
        """As the gate of this round says."""
        return self._now(proposal.dials).settle(proposal)

    def _now(self, dials: Dials) -> Gate:
        return Open() if dials.number < self.rounds else self.gate
