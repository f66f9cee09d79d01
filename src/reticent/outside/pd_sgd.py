"""The deniability gate: drop a noisy gradient that too few batches could explain (PD-SGD)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from reticent.accounting import Event
from reticent.errors import SettingError, require
from reticent.inside import AsItIs, Deniable, RoundSettings
from reticent.outside.gates import Charge, Outcome, Proof, Proposal


@dataclass(frozen=True)
class PlausibleDeniability:
    """Keep iff at least `needed` batches explain the update within a factor e^`band` (PD-SGD, definition 1).

    `band` is gamma, `needed` is T; the seed batch counts, so that T = 1 keeps everything. The answer is not noised: no
    differential privacy. `noisy=False` is the paper's ablation that tests with noise and applies the gradient without.
    """

    std: float
    band: float
    needed: int = 2
    noisy: bool = True
    proof: ClassVar[Proof] = Proof()

    def __post_init__(self) -> None:
        if not self.std > 0 or not self.band > 0 or self.needed < 1:
            raise SettingError("the deniability test needs std and band above 0, and at least one batch")

    @property
    def candidates(self) -> int:
        """One."""
        return 1

    def charge(self, gradient: Event, settings: RoundSettings) -> Charge:
        """Gradient and answer, neither of them covered by a proof."""
        batches = max(1, round(settings.size / settings.batch_size))
        if self.needed > batches:
            raise SettingError(
                f"{self.needed} batches must explain an update, but there are only {batches}: none would pass"
            )
        return Charge((gradient, AsItIs().event()) if self.needed > 1 else (gradient,))

    def settle(self, proposal: Proposal) -> Outcome:
        """Ask how many batches explain it."""
        if self.needed == 1:
            return Outcome(kept=True)
        seen = proposal.released if self.noisy else None
        query = Deniable(proposal.task, proposal.before, proposal.sealed, seen, self.std, self.band, self.needed)
        vault = proposal.vault
        return Outcome(kept=float(vault.release(vault.ask(query, proposal.sealed.draw), AsItIs())) > 0)


@dataclass(frozen=True)
class RandomRejection:
    """Drop a share of the updates by a coin: the paper's ablation of the test."""

    share: float
    proof: ClassVar[Proof] = Proof()

    def __post_init__(self) -> None:
        require(0 <= self.share <= 1, f"rejection is a share between 0 and 1, not {self.share}")

    @property
    def candidates(self) -> int:
        """One."""
        return 1

    def charge(self, gradient: Event, settings: RoundSettings) -> Charge:  # noqa: ARG002
        """The gradient's own event: the coin is nobody's secret."""
        return Charge((gradient,))

    def settle(self, proposal: Proposal) -> Outcome:
        """Throw the coin."""
        return Outcome(kept=proposal.coin >= self.share)
