"""The control of importance sampling: release the sum of norms each epoch and plan the noise by it (DPIS)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reticent.accounting import Budget, Event, Gaussian, curve
from reticent.accounting.dpis import ImportancePlan
from reticent.inside import Dials, Everyone, FreshNorms, GaussianNoise, NormTotal, Query, Task, Vault
from reticent.outside.adaptive import Started


@dataclass(frozen=True)
class NormPlan:
    """Each epoch: release K, clamp it, choose the least noise that the filter affords (Wei et al. 2022, section 4.2).

    `spread` is k, `phase` is a_E, `norm_noise` is sigma_K / N, `refresh` looks at all norms at the start of an epoch as
    the paper does (otherwise what is remembered is carried over). With `adaptive_clip` the clip norm follows the mean
    norm: C = clamp(`growth` x K* / N, `smallest` x C_1, `wide` x C_1).
    """

    spread: float = 5.0
    phase: float = 0.8
    norm_noise: float = 0.02
    refresh: bool = False
    adaptive_clip: bool = False
    growth: float = 1.0
    smallest: float = 0.05
    wide: float = 4.0
    floor: float = 0.01
    plan: ImportancePlan | None = None
    first_clip: float = 0.0
    """Set when the run is planned, as `plan` is."""

    def turn(self, dials: Dials) -> Dials:
        """What was released in this epoch stays."""
        return dials

    def start(self, dials: Dials, rounds: int, budget: Budget) -> Started:
        """Fix the filter's order and the plan of all epochs, which are whole ones."""
        epochs = max(1, round(rounds / max(1, int(dials.size // dials.batch_size))))
        releases = 2 if self.adaptive_clip else 1
        noise = Gaussian(self.norm_noise * dials.size)
        plan = ImportancePlan(dials.size, dials.batch_size, epochs, budget, self.phase, noise, releases)
        first = replace(dials, noise_multiplier=plan.planned_noise, norm_total=dials.size * dials.max_grad_norm)
        started = replace(self, plan=plan, first_clip=dials.max_grad_norm)
        return Started(started, first, plan.filter(), min(rounds, epochs * plan.iterations))

    def listen(self, dials: Dials, vault: Vault, task: Task) -> Dials:
        """At the start of an epoch, ask for the norms and plan; else nothing changes."""
        plan = self.plan
        assert plan is not None, "start() comes before the first round"
        if dials.number % plan.iterations:
            return dials
        epoch = dials.number // plan.iterations + 1
        clip = self._clip(dials, vault, epoch)
        asked = replace(dials, max_grad_norm=clip)
        total = self._released(vault, asked, self._norms(task, asked))
        total = min(max(total, dials.batch_size * clip), dials.size * clip)
        kappa = total / (dials.size * clip)
        spent = dials.spent + plan.norm_releases * self._cost(Gaussian(self.norm_noise * dials.size))
        noise = plan.noise(epoch, kappa, spent)
        spent += plan.iterations * self._cost(plan.step(kappa, noise))
        # Noise is relative to the sensitivity K / N = kappa C here, and planned relative to C.
        return replace(asked, norm_total=total, noise_multiplier=noise / kappa, spent=spent)

    def _clip(self, dials: Dials, vault: Vault, epoch: int) -> float:
        """The clip norm of this epoch: in the first nothing is known yet."""
        if not self.adaptive_clip or epoch == 1:
            return dials.max_grad_norm
        widest = self.wide * self.first_clip
        total = self._released(vault, dials, NormTotal(dials, widest, self.spread))
        return min(max(self.growth * total / dials.size, self.smallest * self.first_clip), widest)

    def _norms(self, task: Task, dials: Dials) -> Query:
        if self.refresh:
            return FreshNorms(task, dials, dials.max_grad_norm, self.spread, self.floor)
        return NormTotal(dials, dials.max_grad_norm, self.spread)

    def _released(self, vault: Vault, dials: Dials, query: Query) -> float:
        sealed = vault.ask(query, vault.draw(Everyone(), dials))
        return float(vault.release(sealed, GaussianNoise(self.norm_noise * dials.size)))

    def _cost(self, event: Event) -> float:
        assert self.plan is not None
        return float(curve(event, np.array([float(self.plan.order)]))[0])
