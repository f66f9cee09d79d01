"""What the papers claim, computed exactly as they do: their charging rule, their orders, their conversion.

Not guarantees. Where a claim is refuted, it says so.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from reticent.accounting.events import Event, Gaussian, Subsampled
from reticent.accounting.renyi.conversions import Conversion, overhead, to_epsilon
from reticent.accounting.renyi.curves import curve
from reticent.accounting.renyi.dpis import importance_step
from reticent.errors import UnknownName

Array = NDArray[np.float64]
Orders = Literal["paper", "code"]

ORDERS: dict[Orders, Array] = {
    "paper": np.arange(2, 65, dtype=float),
    "code": np.array([*(np.arange(11, 110) / 10), *range(11, 64), 128, 256, 512]),
}
REFUTED = "as claimed by the paper; refuted: see docs/accounting.md"
REPAIRED = "as claimed by the paper; needs the repairs of docs/accounting.md"
STANDS = "as claimed by the paper"


def check_orders(orders: str) -> Orders:
    """The set of orders of this name, or an error that tells which there are."""
    for known in ORDERS:
        if orders == known:
            return known
    raise UnknownName("set of orders", orders, ORDERS)


@dataclass(frozen=True)
class PaperClaim:
    """An epsilon as a paper computes it."""

    epsilon: float
    delta: float
    order: float | None
    orders: Orders
    conversion: Conversion
    charged: str
    refuted: bool
    text: str
    accepted: int | None = None
    """How many updates were charged, where only accepted ones are."""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data; an infinite number is null."""
        data = dataclasses.asdict(self)
        return data | {"epsilon": self.epsilon if math.isfinite(self.epsilon) else None}


def dpsur(
    training: Event,
    validation: Event,
    accepted: int,
    delta: float,
    *,
    orders: Orders = "paper",
    statistics: Iterable[Event] = (),
) -> PaperClaim:
    """DPSUR: training and validation query of accepted updates only (Fu et al. 2024, theorems 5.1, 5.5, equation 26).

    >>> training, validation = Subsampled(2048 / 60000, Gaussian(2.15)), Subsampled(256 / 60000, Gaussian(0.8))
    >>> round(dpsur(training, validation, 1081, 1e-5, orders="code").epsilon, 3)
    2.999
    """
    charged = f"{accepted} accepted updates and their tests"
    return _claim([training, validation], accepted, delta, orders, "new", charged, REFUTED, statistics)


def sa_dpsgd(
    training: Event, accepted: int, delta: float, *, orders: Orders = "paper", statistics: Iterable[Event] = ()
) -> PaperClaim:
    """SA-DPSGD: accepted updates only, with the older conversion (Fu et al. 2022, theorem 1, lemma 2).

    >>> round(sa_dpsgd(Subsampled(512 / 60000, Gaussian(1.23)), 4698, 1e-5).epsilon, 3)
    3.0
    """
    return _claim([training], accepted, delta, orders, "old", f"{accepted} accepted updates", REFUTED, statistics)


def dpsign(
    training: Event, steps: int, delta: float, *, orders: Orders = "paper", statistics: Iterable[Event] = ()
) -> PaperClaim:
    """DPSignSGD and DPSignAdam: plain DP-SGD steps (Ghosh & Das 2024, theorem 5).

    >>> round(dpsign(Subsampled(512 / 60000, Gaussian(1.3121)), 3510, 1e-5).epsilon, 3)
    2.0
    """
    return _claim([training], steps, delta, orders, "new", f"{steps} steps", STANDS, statistics)


def dpis(epsilon: float, delta: float) -> PaperClaim:
    """DPIS: its plan spends just the budget, norm sums charged as if their noise were N/b times larger (equation 19).

    >>> dpis(2.0, 1e-5).refuted
    False
    """
    charged = "each step, and norm sums as if their noise were N/b times larger"
    return PaperClaim(epsilon, delta, None, "paper", "new", charged, False, REPAIRED)


def dpis_schedule(
    data_size: int,
    batch_size: float,
    epsilon: float,
    delta: float,
    kappas: Sequence[float],
    *,
    phase: float = 0.8,
    size_noise: float | None = None,
    norm_noise: float | None = None,
) -> list[float]:
    """DPIS's own noises: the best order anew in every epoch, norm sums charged as if their noise were N/b times larger.

    Wei et al. 2022, algorithm 1 and equation 19, for kappas released one an epoch.

    >>> noises = dpis_schedule(6000, 600, 2.0, 1e-5, [1, 0.8, 0.6, 0.5, 0.4], phase=0.6, size_noise=120.0)
    >>> [round(noise, 4) for noise in noises]
    [1.8906, 1.8695, 1.8211, 1.5817, 1.5428]
    """
    orders, epochs, steps = ORDERS["paper"], len(kappas), int(data_size // batch_size)
    norm = curve(Subsampled(batch_size / data_size, Gaussian(norm_noise or 0.02 * data_size)), orders)
    left = epsilon - overhead(orders, delta) - (curve(Gaussian(size_noise), orders) if size_noise else 0.0)
    noises: list[float] = []
    for epoch, kappa in enumerate(kappas, start=1):
        left = left - norm
        rest = epochs - epoch
        early = epoch <= phase * epochs
        parts = [(kappa, steps), (1.0, steps * rest)] if early else [(kappa, steps * (rest + 1))]

        def affords(noise: float, parts: Sequence[tuple[float, int]] = parts, room: Array = left - rest * norm) -> bool:
            events = [(importance_step(data_size, batch_size, share, noise), count) for share, count in parts if count]
            return bool(np.any(sum(count * curve(event, orders) for event, count in events) <= room))

        noises.append(_least(affords))
        left = left - steps * curve(importance_step(data_size, batch_size, kappa, noises[-1]), orders)
    return noises


def _least(affords: Callable[[float], bool]) -> float:
    low, high = 1e-2, 1e6
    while high / low > 1 + 1e-9:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if affords(middle) else (middle, high)
    return high


def _claim(
    events: Sequence[Event],
    count: int,
    delta: float,
    orders: Orders,
    conversion: Conversion,
    charged: str,
    text: str,
    statistics: Iterable[Event] = (),
) -> PaperClaim:
    grid = ORDERS[orders]
    total = count * sum((curve(event, grid) for event in events), np.zeros(len(grid)))
    total = total + sum((curve(event, grid) for event in statistics), np.zeros(len(grid)))
    epsilon, order = to_epsilon(grid, total, delta, conversion)
    return PaperClaim(epsilon, delta, order, orders, conversion, charged, text == REFUTED, text, count)
