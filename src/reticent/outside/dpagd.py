"""The best step length, chosen privately; when no step helps, a better gradient is bought (DPAGD, Lee & Kifer 2018)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor

from reticent.accounting import Budget, Event, NoisyMax, RenyiFilter
from reticent.accounting.budget import most_concentrated
from reticent.errors import SettingError, require
from reticent.inside import BestOf, Everyone, GaussianNoise, RoundSettings, StepScores
from reticent.outside.adaptive import Started
from reticent.outside.gates import Charge, Outcome, Proof, Proposal


@dataclass(frozen=True)
class BestLength:
    """Move along the noisy gradient by the best of `choices` lengths from 0 to `longest`; 0 asks for less noise.

    Lee & Kifer 2018, algorithm 1: `limit` is C_obj, `raise_by` is gamma, and the budget is cut into `splits` gradients
    and as many choices to begin with.
    """

    choices: int = 21
    longest: float = 2.0
    limit: float = 3.0
    raise_by: float = 0.1
    splits: int = 60
    choice_epsilon: float = 0.0
    """What one choice costs; fixed when the run is planned."""

    def __post_init__(self) -> None:
        require(
            self.choices >= 2 and self.splits >= 1, "there must be at least two lengths to choose from, and one split"
        )
        require(
            0 < self.longest < math.inf and 0 < self.limit < math.inf,
            "longest and loss_limit must be above 0 and finite",
        )
        require(0 < self.raise_by < math.inf, f"raise_by must be above 0 and finite, not {self.raise_by}")

    @property
    def candidates(self) -> int:
        """One; within it the gradient is improved until a step helps."""
        return 1

    @property
    def proof(self) -> Proof:
        """Every release is charged as it comes."""
        return Proof("filter")

    def start(self, settings: RoundSettings, rounds: int, budget: Budget, before: tuple[Event, ...] = ()) -> Started:
        """One order for the whole run, the cost of a choice, and the first gradient's noise."""
        order, rho = most_concentrated(budget, before)
        each = rho / (2 * self.splits)
        started = replace(self, choice_epsilon=math.sqrt(2 * each))
        first = replace(settings, noise_multiplier=noise_of(each))
        return Started(started, first, RenyiFilter(order, budget.epsilon, budget.delta, budget.adjacency), rounds)

    def charge(self, gradient: Event, settings: RoundSettings) -> Charge:  # noqa: ARG002
        """Gradient and choice, if the first choice moves; more if it does not: the filter decides how often."""
        if not self.choice_epsilon > 0:
            raise SettingError("BestLength plans the whole budget by itself: make it the gate, not a part of one")
        return Charge((gradient, NoisyMax(self.choice_epsilon)))

    def settle(self, proposal: Proposal) -> Outcome:
        """Choose; while standing still is best, buy a better gradient and choose again."""
        gradient, rho = proposal.released, rho_of(proposal.settings.noise_multiplier)
        while True:
            length, direction = self._choose(proposal, gradient)
            if length > 0:
                place = proposal.before - length * direction
                return Outcome(kept=True, place=place, noise_multiplier=noise_of(rho))
            more = self.raise_by * rho
            gradient = (rho * gradient + more * self._again(proposal, noise_of(more))) / (rho + more)
            rho += more

    def _choose(self, proposal: Proposal, gradient: Tensor) -> tuple[float, Tensor]:
        direction = gradient / gradient.norm()
        lengths = tuple(float(length) for length in np.linspace(0, self.longest, self.choices))
        query = StepScores(proposal.task, proposal.before, direction, lengths, self.limit)
        vault = proposal.vault
        sealed = vault.ask(query, vault.draw(Everyone(), proposal.settings))
        return lengths[int(vault.release(sealed, BestOf(self.choice_epsilon)))], direction

    def _again(self, proposal: Proposal, noise: float) -> Tensor:
        """The same gradient once more, with noise of its own."""
        vault = proposal.vault
        with proposal.task.flat.moved_to(proposal.before):
            sealed = vault.ask(proposal.query, vault.draw(Everyone(), proposal.settings))
        return vault.release(sealed, GaussianNoise(noise))


def noise_of(rho: float) -> float:
    """The noise multiplier of a Gaussian release of so much zCDP: 1 / sqrt(2 rho).

    >>> noise_of(0.5), rho_of(1.0)
    (1.0, 0.5)
    """
    return 1 / math.sqrt(2 * rho)


def rho_of(noise_multiplier: float) -> float:
    """The zCDP of a Gaussian release."""
    return 1 / (2 * noise_multiplier**2)
