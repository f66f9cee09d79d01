"""The accountant of an Opacus script: what was released, priced by the accountant of the same name."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from reticent.accounting import Event, Gaussian, Ledger, Subsampled, Unbounded, price
from reticent.accounting.pricing import renyi_epsilon
from reticent.errors import DataError, PrivacyWarning, UnknownName, require

Line = tuple[float, float, int]
"""Noise multiplier, sample rate, steps."""

RENYI = np.array([1 + x / 10 for x in range(1, 100)] + list(range(12, 64)), dtype=float)
"""The orders that Opacus looks at: with others its epsilon would be another."""

NAMES = ("rdp", "prv", "gdp")
NO_GDP = (
    "GDP takes the central limit for the truth and may state less than is proved: epsilon is that of the loss "
    "distribution instead (accountant='prv')"
)


def tally_of(history: Iterable[Line]) -> dict[Event, int]:
    """The releases of a history as events.

    >>> tally_of([(1.1, 0.01, 100)])
    {Subsampled(rate=0.01, inner=Gaussian(noise_multiplier=1.1)): 100}
    """
    found: Counter[Event] = Counter()
    for noise, rate, steps in history:
        found[Gaussian(noise) if rate == 1 else Subsampled(rate, Gaussian(noise))] += steps
    return dict(found)


def epsilon_of(history: Sequence[Line], delta: float, name: str) -> float:
    """Epsilon of a history: by "rdp" just what Opacus says, by "prv" the loss distribution, rounded up.

    >>> round(epsilon_of([(1.1, 0.01, 1000)], 1e-5, "rdp"), 6)
    1.71177
    """
    if not any(steps for _, _, steps in history):
        return 0.0
    if any(noise == 0 for noise, _, steps in history if steps):
        return math.inf
    if check_name(name) == "rdp":
        return renyi_epsilon(tally_of(history), delta, RENYI)[0]
    return price(tally_of(history), delta, accountant="pld").epsilon


def check_name(name: str) -> str:
    """The accountant that answers to this name."""
    if name not in NAMES:
        raise UnknownName("accountant of Opacus", name, NAMES)
    return "prv" if name == "gdp" else name


def least_noise(before: Sequence[Line], rate: float, steps: int, epsilon: float, delta: float, name: str) -> float:
    """The least noise with which so many steps, after those before, stay within epsilon; found from above.

    >>> noise = least_noise([], 0.01, 1000, 2.0, 1e-5, "rdp")
    >>> 1.99 < epsilon_of([(noise, 0.01, 1000)], 1e-5, "rdp") <= 2.0
    True
    """
    require(0 < epsilon < math.inf, f"target_epsilon must be above 0 and finite, not {epsilon}")

    def fits(noise: float) -> bool:
        return epsilon_of([*before, (noise, rate, steps)], delta, name) <= epsilon

    high = 1.0
    while not fits(high):
        high *= 2
        require(high < 1e6, f"no noise keeps epsilon {epsilon:g} at delta {delta:g} after what was released before")
    low = 0.0
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if middle > 0.05 and fits(middle) else (middle, high)
    return high


class OpacusAccountant:
    """What was released by all runs of an engine, read from their ledgers, with what a checkpoint brought.

    >>> OpacusAccountant("rdp").get_epsilon(1e-5)
    0.0
    """

    def __init__(self, name: str):
        self._name = check_name(name)
        if name == "gdp":
            warnings.warn(NO_GDP, PrivacyWarning, stacklevel=3)
        self._brought: list[Line] = []
        self._ledgers: list[Callable[[], Ledger | None]] = []

    @property
    def brought(self) -> bool:
        """Whether a part of the history comes from a checkpoint."""
        return bool(self._brought)

    def follow(self, ledger: Callable[[], Ledger | None]) -> None:
        """Count what is written into a ledger from now on: nothing else is counted, nor can be forgotten."""
        self._ledgers.append(ledger)

    @property
    def history(self) -> list[Line]:
        """Noise multiplier, sample rate and steps of every stretch of equal steps."""
        found: list[Line] = list(self._brought)
        for ledger in self._ledgers:
            for entry in ledger() or ():
                line = _line(entry.event)
                if found and found[-1][:2] == line[:2]:
                    line = (*line[:2], found.pop()[2] + 1)
                found.append(line)
        return found

    def get_epsilon(self, delta: float, **_settings: Any) -> float:
        """Epsilon of all steps so far, if their number was fixed without looking at the examples."""
        return epsilon_of(self.history, delta, self._name)

    def mechanism(self) -> str:
        """The name of the accountant."""
        return self._name

    def __len__(self) -> int:
        return sum(steps for _, _, steps in self.history)

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint holds of it, in the form that Opacus reads too."""
        return {"history": self.history, "mechanism": self._name}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Begin with the history of a checkpoint; what was released here already is added to it."""
        self._brought = [*read_history(state.get("history")), *self._brought]


def _line(event: Event) -> Line:
    rate, inner = (event.rate, event.inner) if isinstance(event, Subsampled) else (1.0, event)
    if isinstance(inner, Unbounded):
        return 0.0, rate, 1  # as Opacus writes a step without noise: its epsilon is infinite
    if not isinstance(inner, Gaussian):
        raise DataError(f"{event} is no step of DP-SGD: an Opacus accountant cannot hold it")
    return inner.noise_multiplier, rate, 1


def read_history(told: object) -> list[Line]:
    """A history from a file of unknown origin, checked.

    >>> read_history([[1.1, 0.01, 5]])
    [(1.1, 0.01, 5)]
    """
    wrong = "the history of an Opacus accountant is a list of (noise_multiplier, sample_rate, steps)"
    if not isinstance(told, list | tuple):
        raise DataError(f"{wrong}: there is none")
    return [_checked(line, wrong) for line in told]


def _checked(line: object, wrong: str) -> Line:
    if not isinstance(line, list | tuple) or len(line) != 3:
        raise DataError(f"{wrong}: a line has another form")
    if any(isinstance(part, bool) or not isinstance(part, int | float) for part in line):
        raise DataError(f"{wrong}: a line holds something that is no number")
    noise, rate, steps = line
    if not (0 <= noise < math.inf and 0 < rate <= 1 and 0 <= steps < 1e12 and steps == int(steps)):
        raise DataError(f"{wrong}: {noise:g}, {rate:g}, {steps:g} cannot be that")
    return float(noise), float(rate), int(steps)
