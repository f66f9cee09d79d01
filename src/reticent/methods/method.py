"""Method: a named composition of stages; what a paper changes is a field of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace

from torch import nn

from reticent.accounting import Event
from reticent.errors import SettingError, require
from reticent.inside import (
    Bound,
    Clip,
    GaussianNoise,
    GradientSum,
    Mechanism,
    Poisson,
    Query,
    RoundSettings,
    Sampler,
    Task,
)
from reticent.outside import Adaptive, Averaged, Charge, Control, Direction, Gate, Open, Remembering, Steady

LEAST_NOISE = 1e-9
"""Below this, epsilon has more than eighteen digits, and accountants run out of theirs."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Method:
    """DP-SGD, unless a field says otherwise; it prints what differs.

    `noise_multiplier=None` asks for the least noise that the budget allows; it is found before the run begins.

    >>> Method(name="mine", max_grad_norm=0.1)
    Method(name='mine', max_grad_norm=0.1)
    """

    name: str
    noise_multiplier: float | None = None
    max_grad_norm: float = 1.0
    sampler: Sampler = Poisson()  # noqa: RUF009 - stages are frozen
    bound: Bound = Clip()  # noqa: RUF009
    query: Callable[[Task, Bound, RoundSettings], Query] = GradientSum
    noise: Callable[[float], Mechanism] = GaussianNoise
    direction: Direction | Remembering = Averaged()  # noqa: RUF009
    gate: Gate = Open()  # noqa: RUF009
    control: Control = Steady()  # noqa: RUF009
    optimizer: str = "sgd"

    def __post_init__(self) -> None:
        require(
            0 < self.max_grad_norm < math.inf, f"max_grad_norm must be above 0 and finite, not {self.max_grad_norm}"
        )
        require(
            self.noise_multiplier is None or 0 <= self.noise_multiplier < math.inf,
            f"noise_multiplier must be 0 or more and finite, not {self.noise_multiplier}",
        )
        require(
            not self.noise_multiplier or self.noise_multiplier >= LEAST_NOISE,
            f"noise_multiplier is {self.noise_multiplier}, which hides nothing: say 0 to train without privacy, or use "
            "more; 0.5 to 10 is usual",
        )

    def __repr__(self) -> str:
        said = ((f, getattr(self, f.name)) for f in fields(self))
        words = (
            f"{f.name}={value.__name__ if isinstance(value, type) else repr(value)}"
            for f, value in said
            if value != f.default
        )
        return f"Method({', '.join(words)})"

    @property
    def adaptive(self) -> str | None:
        """The stage that chooses numbers during the run, if one does: then a filter pays for the run."""
        found = [name for name in ("control", "gate") if isinstance(getattr(self, name), Adaptive)]
        if len(found) > 1:
            raise SettingError(f"{self.control} and {self.gate} both plan the whole budget: only one of them can")
        return found[0] if found else None

    def refuse_unfit(self, model: nn.Module, task: str | None = None) -> None:
        """Refuse a model that the query cannot be asked of: before it is planned, and before anything is released."""
        fits = getattr(self.query, "fits", None)
        if fits is not None:
            require(task != "regression", f"{self.name} is for classes, not for numbers: take dpsgd")
            fits(model)

    def turned(self, settings: RoundSettings, number: int) -> RoundSettings:
        """The settings of one round, from those the run was planned with."""
        return self.control.turn(replace(settings, number=number))

    def gradient_event(self, settings: RoundSettings) -> Event:
        """What releasing one noisy gradient costs by itself."""
        return self.sampler.amplify(self.noise(settings.noise_multiplier).event(), settings)

    def charge(self, settings: RoundSettings) -> Charge:
        """What one round with these settings writes into the ledger."""
        return self.gate.charge(self.gradient_event(settings), settings)
