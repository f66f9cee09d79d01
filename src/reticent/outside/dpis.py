"""The control of importance sampling: release the sum of norms each epoch and plan the noise by it (DPIS)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from reticent.accounting import Budget, Event, Gaussian
from reticent.accounting.claims import claimed
from reticent.accounting.claims.claimed import PaperClaim
from reticent.accounting.renyi.dpis import ImportancePlan
from reticent.errors import require
from reticent.inside import (
    Everyone,
    FreshNorms,
    GaussianNoise,
    Headcount,
    ImportanceSettings,
    NormTotal,
    Query,
    RoundSettings,
    Task,
    Vault,
)
from reticent.outside.adaptive import Started
from reticent.outside.gates import Releases

FEWEST = 0.5
"""The least that a noisy number of examples counts, as a share of the public one."""


@dataclass(frozen=True)
class NormPlan:
    """Each epoch: release K, clamp it, choose the least noise that the filter affords (Wei et al. 2022, section 4.2).

    `spread` is k, `phase` is a_E, `norm_noise` is sigma_K / N, `refresh` looks at all norms at the start of an epoch as
    the paper does (otherwise what is remembered is carried over). With `adaptive_clip` the clip norm follows the mean
    norm: C = clamp(`growth` x K* / N, `smallest` x C_1, `wide` x C_1), with norms cut at `wide` x C_1 (C*) for K*.
    `size_noise` is sigma_N / N: the number of examples is released with it, and scales the steps; 0 takes the public
    one.
    """

    spread: float = 5.0
    phase: float = 0.8
    norm_noise: float = 0.02
    refresh: bool = False
    adaptive_clip: bool = False
    growth: float = 1.0
    smallest: float = 0.05
    wide: float = 4.0
    size_noise: float = 0.0
    floor: float = 0.01
    plan: ImportancePlan | None = None
    first_clip: float = 0.0
    """Set when the run is planned, as `plan` is."""

    def __post_init__(self) -> None:
        require(1 <= self.spread < math.inf, f"spread must be 1 or more and finite, not {self.spread}")
        require(0 <= self.phase <= 1, f"phase must lie between 0 and 1, not {self.phase}")
        require(0 < self.norm_noise < math.inf, f"norm_noise must be above 0 and finite, not {self.norm_noise}")
        require(0 <= self.size_noise < math.inf, f"size_noise must be 0 or more and finite, not {self.size_noise}")
        require(0 < self.growth < math.inf, f"growth must be above 0 and finite, not {self.growth}")
        require(0 < self.floor <= 1, f"floor must be above 0 and at most 1, not {self.floor}")
        require(0 < self.smallest <= 1, f"smallest must be above 0 and at most 1, not {self.smallest}")
        require(1 <= self.wide < math.inf, f"external_clip must be 1 or more and finite, not {self.wide}")

    def turn(self, settings: RoundSettings) -> RoundSettings:
        """What was released in this epoch stays."""
        return settings

    def start(self, settings: RoundSettings, rounds: int, budget: Budget, before: tuple[Event, ...] = ()) -> Started:
        """Fix the filter's order and the plan of all epochs, which are whole ones."""
        epochs = max(1, round(rounds / max(1, int(settings.size // settings.batch_size))))
        releases = 2 if self.adaptive_clip else 1
        noise = Gaussian(self.norm_noise * settings.size)
        counting = self.size_noise * settings.size or None
        plan = ImportancePlan(
            settings.size, settings.batch_size, epochs, budget, self.phase, noise, releases, counting, before
        )
        first = ImportanceSettings(
            size=settings.size,
            batch_size=settings.batch_size,
            max_grad_norm=settings.max_grad_norm,
            noise_multiplier=plan.planned_noise,
            norm_total=settings.size * settings.max_grad_norm,
            spent=plan.spent_apart,
        )
        started = replace(self, plan=plan, first_clip=settings.max_grad_norm)
        return Started(started, first, plan.filter(), min(rounds, epochs * plan.iterations))

    def listen(self, settings: RoundSettings, vault: Vault, task: Task) -> RoundSettings:
        """At the start of an epoch, ask for the norms and plan; else nothing changes."""
        settings, plan = ImportanceSettings.of(settings), self._planned()
        if settings.number % plan.iterations:
            return settings
        if settings.number == 0 and self.size_noise:
            settings = replace(settings, counted=self._counted(settings, vault))
        epoch = settings.number // plan.iterations + 1
        clip = self._clip(settings, vault, epoch)
        asked = replace(settings, max_grad_norm=clip)
        total = self._released(vault, asked, self._norms(task, asked))
        total = min(max(total, settings.batch_size * clip), settings.size * clip)
        kappa = total / (settings.size * clip)
        spent = settings.spent + plan.norm_releases * plan.cost(Gaussian(self.norm_noise * settings.size))
        noise = plan.noise(epoch, kappa, spent)
        spent += plan.iterations * plan.cost(plan.step(kappa, noise))
        # Noise is relative to the sensitivity K / N = kappa C here, and planned relative to C.
        return replace(asked, norm_total=total, noise_multiplier=noise / kappa, spent=spent)

    def claim(self, releases: Releases) -> PaperClaim:
        """The paper's own plan reaches the budget too, by charges that need our repairs."""
        return claimed.dpis(self._planned().budget.epsilon, releases.delta)

    def _clip(self, settings: RoundSettings, vault: Vault, epoch: int) -> float:
        """The clip norm of this epoch: in the first nothing is known yet."""
        if not self.adaptive_clip or epoch == 1:
            return settings.max_grad_norm
        widest = self.wide * self.first_clip
        total = self._released(vault, settings, NormTotal(settings, widest, self.spread))
        return min(max(self.growth * total / settings.size, self.smallest * self.first_clip), widest)

    def _counted(self, settings: RoundSettings, vault: Vault) -> float:
        """The noisy number of examples (eq. 10), never so small that steps explode."""
        sealed = vault.ask(Headcount(), vault.draw(Everyone(), settings))
        return max(float(vault.release(sealed, GaussianNoise(self.size_noise * settings.size))), settings.size * FEWEST)

    def _norms(self, task: Task, settings: RoundSettings) -> Query:
        if self.refresh:
            return FreshNorms(task, settings, settings.max_grad_norm, self.spread, self.floor)
        return NormTotal(settings, settings.max_grad_norm, self.spread)

    def _released(self, vault: Vault, settings: RoundSettings, query: Query) -> float:
        sealed = vault.ask(query, vault.draw(Everyone(), settings))
        return float(vault.release(sealed, GaussianNoise(self.norm_noise * settings.size)))

    def _planned(self) -> ImportancePlan:
        assert self.plan is not None, "start() comes before the first round"
        return self.plan
