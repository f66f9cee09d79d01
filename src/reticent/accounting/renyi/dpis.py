"""The budget plan of DPIS (Wei et al. 2022, section 4): noise chosen every epoch from the released norm sum, one order.

kappa = K / (N C) is the released sum of clipped norms as a share of its maximum. A step with noise multiplier sigma
costs as much as plain DP-SGD at rate b / (kappa N) and noise sigma / kappa. Since sigma depends on what was released
before, a Renyi filter keeps the sum of divergences under a limit, at one order fixed beforehand from public numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from reticent.accounting.budget import Budget, RenyiFilter
from reticent.accounting.events import Event, Gaussian, Subsampled
from reticent.accounting.renyi.conversions import overhead
from reticent.accounting.renyi.curves import curve
from reticent.accounting.renyi.replaced import replaced
from reticent.errors import BudgetSpent, SettingError

ORDERS = range(2, 65)
"""From which the one order of a plan is chosen: whole ones, as a smaller kappa is known to cost less at those only."""

SLACK = 1e-12
"""Share of the limit that a plan leaves, so that summing in another order does not pass it: n terms round by n times
1e-16 of their sum at worst. If they do pass, the filter refuses the last release: nothing unpaid gets out."""

LEAST_NOISE, MOST_NOISE, PRECISION = 1e-2, 1e6, 1e-10
"""Between which a noise is looked for, and the share up to which it is found, always on the side that costs less."""

NORM_NOISE = 0.02
"""Noise on the norm sum of a draw, in expected batch sizes: the paper's 0.02 N, on the scale of the draw."""


def importance_step(data_size: float, batch_size: float, kappa: float, noise_multiplier: float) -> Event:
    """One importance-sampled step (Wei et al. 2022, lemma 3.1, with the repairs of docs/accounting.md).

    >>> importance_step(60000, 2048, 1.0, 1.4) == Subsampled(2048 / 60000, Gaussian(1.4))
    True
    """
    if not batch_size / data_size <= kappa <= 1:
        raise SettingError(
            f"kappa is {kappa:g}: the norm sum must be clamped so that it lies between batch_size / data_size "
            f"= {batch_size / data_size:g} and 1"
        )
    return Subsampled(min(1.0, batch_size / (kappa * data_size)), Gaussian(noise_multiplier / kappa))


@dataclass(frozen=True)
class ImportancePlan:
    """What DPIS fixes before the run, and the rule by which it chooses the noise during it.

    `phase` is the share of epochs (a_E) in which the rest of the run is planned as plain DP-SGD; afterwards it is
    planned with the kappa just released. `norm_event` is one release of the norm sum, by default on a draw with noise
    0.02 b; `size_noise` is the noise on the number of examples, None if it is public; `before` is what was released of
    the same examples beside the run.

    >>> plan = ImportancePlan(6000, 600, 5, Budget(2.0, 1e-5), phase=0.6, size_noise=120.0)
    >>> plan.order, round(plan.planned_noise, 4)
    (9, 1.8916)
    """

    data_size: int
    batch_size: float
    epochs: int
    budget: Budget
    phase: float = 0.8
    norm_event: Event | None = None
    norm_releases: int = 1
    size_noise: float | None = None
    before: tuple[Event, ...] = ()
    fixed_order: int | None = None
    order: int = field(init=False)
    planned_noise: float = field(init=False)

    def __post_init__(self) -> None:
        if self.norm_event is None:
            rate = min(1.0, self.batch_size / self.data_size)
            object.__setattr__(self, "norm_event", Subsampled(rate, Gaussian(NORM_NOISE * self.batch_size)))
        candidates = ORDERS if self.fixed_order is None else (self.fixed_order,)
        noise, order = min((self._noise_at(order), order) for order in candidates)
        if math.isinf(noise):
            raise SettingError(f"epsilon {self.budget.epsilon:g} does not even pay for the norm sums: raise it")
        object.__setattr__(self, "order", order)
        object.__setattr__(self, "planned_noise", noise)

    @property
    def iterations(self) -> int:
        """Steps of one epoch."""
        return max(1, int(self.data_size // self.batch_size))

    @property
    def limit(self) -> float:
        """What the divergences may sum up to at the plan's order."""
        return self.budget.epsilon - float(overhead(self.order, self.budget.delta))

    def filter(self) -> RenyiFilter:
        """The allowance every release of the run must pass; the size's release and those before are spent already."""
        found = RenyiFilter(self.order, self.budget.epsilon, self.budget.delta, self.budget.adjacency)
        for event in self._apart():
            found.spend(event)
        return found

    @property
    def spent_apart(self) -> float:
        """What the release of the size and those before the run cost at the plan's order."""
        return sum(self.cost(event) for event in self._apart())

    def step(self, kappa: float, noise_multiplier: float) -> Event:
        """The event of one step."""
        return importance_step(self.data_size, self.batch_size, kappa, noise_multiplier)

    def noise(self, epoch: int, kappa: float, spent: float) -> float:
        """The least noise for epoch 1, 2, ... that leaves enough for the rest; `spent` includes this epoch's norm sum.

        Docs/accounting.md, rule A6: raises `BudgetSpent` where no noise does.
        """
        later = (self.epochs - epoch) * self.norm_releases * self._cost(self._norm(), self.order)
        left = self.limit * (1 - SLACK) - spent - later
        steps, rest = self.iterations, self.epochs - epoch
        if epoch <= self.phase * self.epochs:
            parts = [(kappa, steps), (1.0, steps * rest)]
        else:
            parts = [(kappa, steps * (rest + 1))]
        found = _least(lambda noise: sum(n * self._cost(self.step(k, noise), self.order) for k, n in parts if n), left)
        if math.isinf(found):
            raise BudgetSpent(f"nothing of epsilon {self.budget.epsilon:g} is left for epoch {epoch}: training stops")
        return found

    def schedule(self, kappas: Sequence[float]) -> list[float]:
        """The noises of a whole run in which these kappas were released, one an epoch; all of it passes the filter."""
        allowance, noises = self.filter(), []
        for epoch, kappa in enumerate(kappas, start=1):
            for _ in range(self.norm_releases):
                allowance.spend(self._norm())
            noises.append(self.noise(epoch, kappa, allowance.spent))
            for _ in range(self.iterations):
                allowance.spend(self.step(kappa, noises[-1]))
        return noises

    def _norm(self) -> Event:
        assert self.norm_event is not None
        return self.norm_event

    def _apart(self) -> list[Event]:
        """What is released besides the norm sums and the steps."""
        return [*self.before, *([] if self.size_noise is None else [Gaussian(self.size_noise)])]

    def _noise_at(self, order: int) -> float:
        """The noise a whole run at kappa = 1 would need at one order; infinite where the order leaves nothing."""
        others = [*self._apart(), *[self._norm()] * (self.norm_releases * self.epochs)]
        left = self.budget.epsilon - float(overhead(order, self.budget.delta))
        left -= sum(self._cost(event, order) for event in others)
        steps = self.iterations * self.epochs
        return _least(lambda noise: steps * self._cost(self.step(1.0, noise), order), left)

    def cost(self, event: Event) -> float:
        """The divergence of an event at the plan's order."""
        return self._cost(event, self.order)

    def _cost(self, event: Event, order: int) -> float:
        found = replaced if self.budget.adjacency == "replace" else curve
        return float(found(event, np.array([float(order)]))[0])


def _least(cost: Callable[[float], float], left: float) -> float:
    """The least noise whose cost is at most what is left; infinite if there is none."""
    low, high = LEAST_NOISE, MOST_NOISE
    if left <= 0 or cost(high) > left:
        return math.inf
    while high / low > 1 + PRECISION:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if cost(middle) <= left else (middle, high)
    return high
