"""Plausible deniability: batches that could have been drawn instead, and how many explain a noisy gradient (PD-SGD)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from reticent.accounting import Event, Unbounded
from reticent.errors import require
from reticent.inside.bounds import Bound
from reticent.inside.drawn import Drawn
from reticent.inside.draws import Draw, Memory
from reticent.inside.mechanisms import normal_like
from reticent.inside.randomness import Streams
from reticent.inside.sealed import Sealed
from reticent.inside.settings import RoundSettings
from reticent.inside.store import Batch
from reticent.inside.task import Task

NO_DP = Unbounded("plausible deniability is not differential privacy: docs/methods/pd_sgd.md has a counterexample")


@dataclass(frozen=True)
class Partition:
    """A fresh random split of all examples into batches of about the declared size, one of which is the seed.

    With `poison`, the first examples, this share of a batch, are always together in one batch (PD-SGD, section 6.2).
    """

    poison: float = 0.0

    def __post_init__(self) -> None:
        require(0 <= self.poison < 1, f"poison is a share of a batch, at least 0 and below 1, not {self.poison:g}")

    def poisoned(self, settings: RoundSettings) -> int:
        """How many examples stay together."""
        return round(self.poison * settings.batch_size)

    def draw(self, settings: RoundSettings, population: int, rng: np.random.Generator, memory: Memory) -> Draw:  # noqa: ARG002
        """The seed batch; the others go along, closed."""
        order, together = rng.permutation(population), self.poisoned(settings)
        if together:
            order = np.concatenate([np.arange(together), order[order >= together]])
        parts = np.array_split(order, max(1, round(settings.size / settings.batch_size)))
        seed = int(rng.integers(len(parts)))
        return Draw(parts[seed], self, settings, tuple(part for i, part in enumerate(parts) if i != seed))

    def amplify(self, event: Event, settings: RoundSettings) -> Event:  # noqa: ARG002 - whatever the event is
        """Nothing is proved: in parts of a fixed size, one example more may push another one out."""
        return NO_DP


@dataclass(frozen=True, eq=False)
class BatchGradient:
    """The plain gradient of a batch's mean loss: no clipping, so no bound on what one example does."""

    task: Task
    bound: Bound
    settings: RoundSettings

    @property
    def sensitivity(self) -> float:
        """Not bounded."""
        return math.inf

    def answer(self, drawn: Drawn) -> Tensor:
        """The mean gradient of the batch drawn."""
        return self.whole(self.part(drawn))

    def part(self, drawn: Drawn) -> Tensor:
        """The sum of the gradients, and how many they are."""
        if self.task.diagnostics is not None:
            self.task.diagnostics.took(drawn.draw._index)
        return gradient_sum(self.task, drawn.batches())

    def whole(self, total: Tensor) -> Tensor:
        """The mean."""
        return total[:-1] / total[-1].clamp(min=1)


@dataclass(frozen=True)
class FixedNoise:
    """Normal noise of standard deviation `std`, whatever the sensitivity."""

    std: float

    def event(self) -> Event:
        """Nothing is proved."""
        return NO_DP

    def _open(self, sealed: Sealed, place: Streams) -> Tensor:
        return normal_like(sealed._value, place.stream(0)).mul_(self.std).add_(sealed._value)


@dataclass(frozen=True)
class AsItIs:
    """No noise at all."""

    def event(self) -> Event:
        """Nothing is proved."""
        return NO_DP

    def _open(self, sealed: Sealed, place: Streams) -> Tensor:  # noqa: ARG002
        return sealed._value


@dataclass(frozen=True, eq=False)
class Deniable:
    """Whether at least `needed` batches, the seed among them, explain the noisy gradient about as well as the seed.

    Batch j does iff | ||D||^2 + 2 <Z, D> | <= 2 std^2 band, where D is the seed's gradient minus batch j's and Z the
    noise: eq. (2) of the paper without the difference of two large logarithms, in float64. With `released=None` the
    noise is thrown here and never seen (the paper's ablation that tests, then applies the gradient without noise).
    """

    task: Task
    before: Tensor
    seed: Sealed
    released: Tensor | None
    std: float
    band: float
    needed: int
    undivided: ClassVar[bool] = True
    """One batch after another is compared with the whole seed, until it is decided."""

    @property
    def sensitivity(self) -> float:
        """A yes or no without noise."""
        return 1.0

    def answer(self, drawn: Drawn) -> Tensor:
        """1 or 0; stops looking as soon as it is decided."""
        seed = self.seed._value.double()
        noise = normal_like(seed, drawn.rng) * self.std if self.released is None else self.released.double() - seed
        found, left = 1, len(drawn.draw._others)
        with self.task.flat.moved_to(self.before):
            for batches in drawn.others():
                if found >= self.needed or found + left < self.needed:
                    break
                left -= 1
                total = gradient_sum(self.task, batches)
                apart = seed - (total[:-1] / total[-1].clamp(min=1)).double()
                found += bool((apart.square().sum() + 2 * noise.dot(apart)).abs() <= 2 * self.std**2 * self.band)
        return torch.tensor(1.0 if found >= self.needed else 0.0)


def gradient_sum(task: Task, batches: Iterable[Batch]) -> Tensor:
    """The gradient of the summed loss over all batches, as one vector, and behind it the number of examples."""
    total, count = torch.zeros_like(task.flat.vector), 0
    parameters = list(task.flat.parameters())
    for batch in batches:
        losses = task.loss(task.model, batch)
        count += len(losses)
        if len(losses):
            parts = torch.autograd.grad(losses.sum(), parameters, allow_unused=True, materialize_grads=True)
            total += torch.cat([part.reshape(-1) for part in parts])
    return torch.cat([total, total.new_tensor([count])])
