"""Choices: what a trial may try. No price knows of these settings, so that all trials release the same events."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product

from reticent.defaults import Chosen
from reticent.errors import SettingError, UnknownName, require

CHOICES = ("lr", "momentum", "average_last", "max_grad_norm")
"""What may differ from trial to trial: settings that no price knows of."""
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Steps to try where nothing is said: the rule's own, and shorter and longer ones."""

Choice = Mapping[str, float]


def grid(tried: Mapping[str, Sequence[float]]) -> list[dict[str, float]]:
    """Every combination of the values to try.

    >>> grid({"lr": [1.0, 2.0], "momentum": [0.9]})
    [{'lr': 1.0, 'momentum': 0.9}, {'lr': 2.0, 'momentum': 0.9}]
    """
    for name, values in tried.items():
        if name not in CHOICES:
            raise UnknownName("setting to try", name, CHOICES)
        if not values:
            raise SettingError(f"no value of {name} to try: write them like {name}=0.5,1,2")
    return [dict(zip(tried, values, strict=True)) for values in product(*tried.values())]


def usual(rule: Chosen) -> list[dict[str, float]]:
    """What is tried where nothing is said: steps round the rule's."""
    return [{"lr": rule.lr * factor, "average_last": rule.average_last} for factor in FACTORS]


def check(choices: Sequence[Choice]) -> tuple[dict[str, float], ...]:
    """The choices as they are stored; refuses what would change the price of a trial.

    >>> check([{"lr": 1}])
    ({'lr': 1.0},)
    """
    if isinstance(choices, Mapping) or not all(isinstance(choice, Mapping) for choice in choices):
        raise SettingError("choices are a list of settings, such as [{'lr': 0.5}, {'lr': 1.0}]; grid() makes one")
    if not choices:
        raise SettingError("there is nothing to choose from: give at least one choice, such as {'lr': 1.0}")
    for name in {name for choice in choices for name in choice} - set(CHOICES):
        raise SettingError(
            f"{name} cannot differ from trial to trial, since every trial must cost the same: say it once for all; "
            f"to choose from are {', '.join(CHOICES)}"
        )
    return tuple({name: _number(name, value) for name, value in choice.items()} for choice in choices)


def _number(name: str, value: object) -> float:
    """A value that a run can have."""
    low, high = {"momentum": (0.0, 1.0), "average_last": (0.0, 1.0)}.get(name, (0.0, math.inf))
    try:
        number = float(value)  # type: ignore[arg-type]  # what has no float is told
    except (TypeError, ValueError):
        number = math.nan
    fits = low < number < high or (number == low and high == 1.0) or (number == high and name == "average_last")
    require(fits, f"{name} must be a number from {low:g} to {high:g}, not {value!r}: nothing was charged")
    return number
