"""Importance sampling: draw examples by what is remembered of their gradient norms (DPIS, Wei et al. 2022)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from reticent.accounting import Event, Subsampled
from reticent.errors import SettingError, require
from reticent.gradients import norms, norms_and_sum
from reticent.gradients.grouped import rows_each
from reticent.inside.bounds import Bound, enforced
from reticent.inside.by_layer import refuse_divided
from reticent.inside.drawn import Drawn
from reticent.inside.draws import Draw, Memory
from reticent.inside.rounding import Running, at_once
from reticent.inside.settings import RoundSettings
from reticent.inside.store import Batch, examples_in
from reticent.inside.task import Task

REACH, NORM = "reach", "norm"
"""What is remembered of each example: a bound for its next norm, and its last norm."""


@dataclass(frozen=True)
class ImportanceSettings(RoundSettings):
    """What a round of importance sampling is run with: besides, the sum of gradient norms that was released."""

    norm_total: float = 0.0
    """The released sum of gradient norms (K)."""
    spent: float = 0.0
    """The Renyi divergence planned so far at the filter's order."""
    counted: float = 0.0
    """The released number of examples (N~), where one was: it only scales the step. 0: the public one."""

    @classmethod
    def of(cls, settings: RoundSettings) -> ImportanceSettings:
        """These settings, if a control that releases the sum of norms made them."""
        if isinstance(settings, cls) and settings.norm_total > 0:
            return settings
        raise SettingError("drawing by gradient norm needs the released sum of norms: take control=NormPlan()")


@dataclass(frozen=True)
class ByNorm:
    """Each example is a candidate with chance min(1, batch_size x remembered bound / norm_total).

    A candidate takes part with a second coin (see `UnitSum`), so that in all an example takes part with chance
    batch_size x norm / norm_total: at most batch_size x max_grad_norm / norm_total, which is the rate that is charged.
    """

    spread: float = 5.0
    """k: how far a norm may grow until the example is looked at again."""

    def __post_init__(self) -> None:
        require(1 <= self.spread < math.inf, f"spread must be 1 or more and finite, not {self.spread}")

    def draw(self, settings: RoundSettings, population: int, rng: np.random.Generator, memory: Memory) -> Draw:
        """Throw every example's coin."""
        total = ImportanceSettings.of(settings).norm_total
        chance = (settings.batch_size * remembered(memory, population, settings, self.spread)[REACH] / total).clamp(
            max=1.0
        )
        index = np.flatnonzero(rng.random(population) < chance.numpy())
        return Draw(index, self, settings)

    def amplify(self, event: Event, settings: RoundSettings) -> Event:
        """Sub-sampling at the largest chance any example has, both coins together."""
        total = ImportanceSettings.of(settings).norm_total
        return Subsampled(min(1.0, settings.batch_size * settings.max_grad_norm / total), event)

    def serves(self, query: object) -> bool:
        """Those that throw the second coin; without it a candidate takes part up to `spread` times as often."""
        return isinstance(query, UnitSum | UnitSumQuery)


@dataclass(frozen=True)
class UnitDirection:
    """Every example that takes part adds a vector of norm exactly norm_total / size, never more (the third repair)."""

    def weights(self, found: Tensor, settings: RoundSettings) -> Tensor:
        """(norm_total / size) / norm.

        >>> settings = ImportanceSettings(100, 10, 1.0, 1.0, norm_total=50.0)
        >>> found = torch.tensor([0.1, 4.0])
        >>> found * UnitDirection().weights(found, settings)
        tensor([0.5000, 0.5000])
        """
        usable = torch.isfinite(found) & (found > 0)
        return torch.where(usable, self.sensitivity(settings) / found, 0.0)

    def sensitivity(self, settings: RoundSettings) -> float:
        """norm_total / size, or the number of examples that was released for it."""
        known = ImportanceSettings.of(settings)
        return known.norm_total / (known.counted or known.size)


@dataclass(frozen=True)
class UnitSum:
    """Makes the query that draws among the candidates and sums unit directions; `floor` is g_L / C."""

    spread: float = 5.0
    floor: float = 0.01

    def __post_init__(self) -> None:
        require(1 <= self.spread < math.inf, f"spread must be 1 or more and finite, not {self.spread}")
        require(0 < self.floor <= 1, f"floor must be above 0 and at most 1, not {self.floor}")

    def __call__(self, task: Task, bound: Bound, settings: RoundSettings) -> UnitSumQuery:
        """The query of one round."""
        refuse_divided(bound, "importance sampling")
        return UnitSumQuery(task, bound, ImportanceSettings.of(settings), self)


@dataclass(frozen=True, eq=False)
class UnitSumQuery:
    """The sum of the unit directions of those candidates whose second coin says yes (algorithm 1, lines 14-26)."""

    task: Task
    bound: Bound
    settings: ImportanceSettings
    rule: UnitSum

    @property
    def sensitivity(self) -> float:
        """What the bound promises."""
        return self.bound.sensitivity(self.settings)

    @property
    def summed_in(self) -> torch.dtype:
        """The type of the parameters."""
        return self.task.flat.vector.dtype

    def answer(self, drawn: Drawn) -> Tensor:
        """Look at every candidate, remember its norm, and add it up if it takes part."""
        task, index = self.task, torch.from_numpy(drawn.draw._index)
        memory = remembered(drawn.memory, drawn.population, self.settings, self.rule.spread)
        reach, second_coins = memory[REACH][index], torch.from_numpy(drawn.coins())
        running = Running(task.flat)
        found: list[Tensor] = [torch.zeros(0)]

        def weigh(part: Tensor) -> Tensor:
            running.begin()
            here = slice(sum(map(len, found)), sum(map(len, found)) + len(part))
            found.append(part.detach().cpu())
            accepted = second_coins[here] < self.chance(found[-1], reach[here])
            weights = enforced(self.bound, part, self.settings)
            weights = torch.where(accepted.to(part.device), weights, torch.zeros_like(weights))
            if task.diagnostics is not None:
                task.diagnostics.saw(part, weights)
            return weights

        for batch in drawn.batches():
            limit = at_once(examples_in(batch), task.max_physical_batch_size, rows_each(batch))
            norms_and_sum(task.model, task.loss, batch, weigh, max_physical_batch_size=limit, into=running.views)
        self._remember(drawn, reach, torch.cat(found))
        return running.sum()

    def chance(self, found: Tensor, reach: Tensor) -> Tensor:
        """The second coin: both together make batch_size x norm / norm_total, also where the first was cut to 1."""
        settings = self.settings
        first = (settings.batch_size * reach / settings.norm_total).clamp(max=1.0)
        return settings.batch_size * self.bounded(found, reach) / (settings.norm_total * first)

    def bounded(self, found: Tensor, reach: Tensor) -> Tensor:
        """The norm cut to the clip norm and to what was expected; 0 where it is not finite."""
        known = torch.where(torch.isfinite(found), found.double(), 0.0)
        return torch.minimum(known, reach).clamp(max=self.settings.max_grad_norm)

    def _remember(self, drawn: Drawn, reach: Tensor, found: Tensor) -> None:
        known = torch.where(torch.isfinite(found), found.double(), 0.0)
        least = self.rule.floor * self.settings.max_grad_norm
        drawn.notes[REACH] = self.rule.spread * self.bounded(found, reach).clamp(min=least)
        drawn.notes[NORM] = known


@dataclass(frozen=True, eq=False)
class NormTotal:
    """The sum over all examples of their remembered norms, each cut at `limit` (repaired eq. 11: no sub-sampling)."""

    settings: RoundSettings
    limit: float
    spread: float = 5.0

    @property
    def sensitivity(self) -> float:
        """One norm counts at most `limit`."""
        return self.limit

    def answer(self, drawn: Drawn) -> Tensor:
        """Add up what is remembered; an example never looked at counts fully."""
        memory = remembered(drawn.memory, drawn.population, self.settings, self.spread)
        return memory[NORM][torch.from_numpy(drawn.draw._index)].clamp(max=self.limit).sum()


@dataclass(frozen=True)
class Headcount:
    """How many examples there are (eq. 10)."""

    sensitivity: float = 1.0

    def answer(self, drawn: Drawn) -> Tensor:
        """Each example counts once."""
        return torch.tensor(float(len(drawn.draw._index)), dtype=torch.float64)


@dataclass(frozen=True, eq=False)
class FreshNorms:
    """Looks at every example's norm anew, then sums as `NormTotal` does: the paper's start of an epoch."""

    task: Task
    settings: RoundSettings
    limit: float
    spread: float = 5.0
    floor: float = 0.01

    @property
    def sensitivity(self) -> float:
        """One norm counts at most `limit`."""
        return self.limit

    def answer(self, drawn: Drawn) -> Tensor:
        """Measure, remember and add up."""
        remembered(drawn.memory, drawn.population, self.settings, self.spread)
        parts = [self._norms(batch).detach().cpu().double() for batch in drawn.batches()]
        found = torch.cat([torch.zeros(0, dtype=torch.float64), *parts])
        known = torch.where(torch.isfinite(found), found, 0.0)
        drawn.notes[NORM] = known
        drawn.notes[REACH] = self.spread * known.clamp(self.floor * self.limit, self.limit)
        return known.clamp(max=self.limit).sum()

    def _norms(self, batch: Batch) -> Tensor:
        task = self.task
        limit = at_once(examples_in(batch), task.max_physical_batch_size, rows_each(batch))
        return norms(task.model, task.loss, batch, max_physical_batch_size=limit)


def remembered(memory: Memory, population: int, settings: RoundSettings, spread: float) -> Memory:
    """The memory of each example there is, begun if it is empty: nothing is known, so every norm may be the largest."""
    if REACH not in memory:
        memory[REACH] = torch.full((population,), spread * settings.max_grad_norm, dtype=torch.float64)
        memory[NORM] = torch.full((population,), float("inf"), dtype=torch.float64)
    return memory
