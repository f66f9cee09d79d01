"""Sealed: a private answer on its way to the door."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from reticent.inside.draws import Draw


@dataclass(frozen=True, eq=False)
class Sealed:
    """A private answer; its sensitivity and its draw travel with it, its value is for the door alone."""

    _value: Tensor = field(repr=False)
    sensitivity: float
    draw: Draw = field(repr=False)
    slack: float = 1.0
    """How much further than its sensitivity rounding may move it: noise makes up for it."""
    query: object = field(default=None, repr=False)
    """What was asked: noise may be proved for some questions only."""
