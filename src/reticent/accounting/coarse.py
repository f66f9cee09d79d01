"""Fewer distinct events that cost at least as much: so that thousands of different noises stay quick to price."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from reticent.accounting.events import Event, Gaussian, Subsampled


def coarsen(tally: Mapping[Event, int], cells: int) -> dict[Event, int]:
    """The tally with noise multipliers rounded down and rates rounded up, each to one of `cells` geometric values.

    Less noise or a higher rate never costs less, as the other mechanism is a post-processing of it: add the noise that
    lacks; with chance 1 - rate / higher rate forget the outcome, and take one as if the record were absent. A value
    moves by one of `cells` equal ratios at most, and never the wrong way: rounding cannot make it cheaper.

    >>> len(coarsen({Subsampled(0.1, Gaussian(1.0 + i / 1000)): 1 for i in range(1000)}, 10))
    11
    """
    steps = [event for event in tally if isinstance(event, Subsampled) and isinstance(event.inner, Gaussian)]
    noises = Cells([event.inner.noise_multiplier for event in steps if isinstance(event.inner, Gaussian)], cells)
    rates = Cells([event.rate for event in steps], cells)
    found: Counter[Event] = Counter()
    for event, count in tally.items():
        match event:
            case Subsampled(rate, Gaussian(noise_multiplier)):
                found[Subsampled(rates.up(rate), Gaussian(noises.down(noise_multiplier)))] += count
            case _:
                found[event] += count
    return dict(found)


class Cells:
    """Geometric cells between the least and the greatest of some numbers."""

    def __init__(self, values: list[float], cells: int):
        self.low, self.high = min(values, default=1.0), max(values, default=1.0)
        self.width = math.log(self.high / self.low) / cells if self.high > self.low > 0 else 0.0

    def down(self, value: float) -> float:
        """The lower end of the value's cell."""
        if not self.width:
            return min(value, self.low)
        return min(value, self.low * math.exp(math.floor(math.log(value / self.low) / self.width) * self.width))

    def up(self, value: float) -> float:
        """The upper end of the value's cell, never above the greatest value."""
        if not self.width:
            return max(value, self.high)
        end = self.low * math.exp(math.ceil(math.log(value / self.low) / self.width) * self.width)
        return max(value, min(self.high, end))
