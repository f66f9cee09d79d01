"""A clip norm that follows a quantile of the gradient norms (Andrew et al. 2021)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from reticent.accounting import Event
from reticent.errors import SettingError, require
from reticent.inside import RoundSettings
from reticent.inside.quantile import CountedSumQuery
from reticent.outside.gates import Charge, Outcome, Proof, Proposal


@dataclass(frozen=True)
class QuantileClip:
    """Keep every update, and move the clip norm to where `quantile` of the gradients are left as they are (eq. 1)."""

    quantile: float = 0.5
    rate: float = 0.2
    """How fast the clip norm follows (eta_C)."""
    candidates: ClassVar[int] = 1
    proof: ClassVar[Proof] = Proof()

    def __post_init__(self) -> None:
        require(0 <= self.quantile <= 1, f"quantile must lie between 0 and 1, not {self.quantile}")
        require(0 < self.rate < math.inf, f"rate must be above 0 and finite, not {self.rate}")

    def charge(self, gradient: Event, settings: RoundSettings) -> Charge:  # noqa: ARG002 - whatever the clip norm is
        """The gradient's own event: the count is part of the answer that it pays for."""
        return Charge((gradient,))

    def settle(self, proposal: Proposal) -> Outcome:
        """Yes, with the clip norm of the rounds to come, from the noisy count that was released with the gradient."""
        if not isinstance(proposal.query, CountedSumQuery):
            raise SettingError("a clip norm that follows a quantile needs a count: take query=CountedSum()")
        counted = float(proposal.released[-1]) / proposal.query.rule.unit(proposal.settings)
        return Outcome(kept=True, max_grad_norm=self.moved(counted, proposal.settings))

    def moved(self, counted: float, settings: RoundSettings) -> float:
        """The next clip norm, for so many that were cut: C exp(-eta (share - quantile)) with the share that was not.

        >>> now = RoundSettings(size=1000, batch_size=100, max_grad_norm=1.0, noise_multiplier=1.0)
        >>> follow = QuantileClip(rate=math.log(4))
        >>> follow.moved(0.0, now), follow.moved(50.0, now)
        (0.5, 1.0)
        """
        share = 1 - min(max(counted / settings.batch_size, 0.0), 1.0)  # noise makes counts that no count can be
        return settings.max_grad_norm * math.exp(-self.rate * (share - self.quantile))
