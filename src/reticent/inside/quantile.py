"""A gradient sum that also counts whom the clip norm cuts (Andrew et al. 2021): one answer, one noise, one price."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from reticent.errors import require
from reticent.inside.bounds import Bound
from reticent.inside.by_layer import refuse_divided
from reticent.inside.drawn import Drawn
from reticent.inside.queries import GradientSum
from reticent.inside.settings import RoundSettings
from reticent.inside.task import Task

MOST = 1e30
"""A count of everybody is below this: where more than declared are there, float32 still has numbers for them."""


@dataclass(frozen=True)
class CountedSum:
    """Makes the query that adds up bounded gradients and counts those that the clip norm cuts."""

    weight: float = 0.1
    """What one example counts, in clip norms: more of it is a better count and a little more noise on the gradient."""

    def __post_init__(self) -> None:
        require(0 < self.weight < math.inf, f"weight must be above 0 and finite, not {self.weight}")

    def __call__(self, task: Task, bound: Bound, settings: RoundSettings) -> CountedSumQuery:
        """The query of one round; refuses counts that float32 has no number for, which noise would not hide."""
        refuse_divided(bound, "a count of those who are cut")
        most = self.unit(settings) * settings.size
        require(most < MOST, f"a count of up to {most:.0e} is more than can be added up: lower count_weight")
        return CountedSumQuery(task, bound, settings, self)

    def unit(self, settings: RoundSettings) -> float:
        """What one example adds to the last number of the answer, so that it has the scale of a gradient.

        >>> CountedSum(0.5).unit(RoundSettings(size=100, batch_size=10, max_grad_norm=4.0, noise_multiplier=1.0))
        2.0
        """
        return self.weight * settings.max_grad_norm


@dataclass(frozen=True, eq=False)
class CountedSumQuery(GradientSum):
    """The gradients' sum with one number more: a unit for each example that is cut; who has no gradient adds nothing.

    The paper counts halves up and down, so that an example without a gradient would count too, and not be as good as
    absent.
    """

    rule: CountedSum

    @property
    def sensitivity(self) -> float:
        """An example moves the sum by what the bound promises and, at right angles to it, the count by a unit."""
        return math.hypot(self.bound.sensitivity(self.settings), self.rule.unit(self.settings))

    def answer(self, drawn: Drawn) -> Tensor:
        """Add up, and count on the way."""
        cut = torch.zeros((), dtype=torch.float64)

        def weigh(found: Tensor) -> Tensor:
            cut.add_((found > self.settings.max_grad_norm).sum().to(cut))  # not those whose norm is no number
            return self._weigh(found)

        total = self.total(drawn, weigh)
        count = (self.rule.unit(self.settings) * cut).to(total)
        return torch.cat([total, count.reshape(1)])
