"""Method: a named composition of stages; what a paper changes is a field of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

from reticent.accounting import Event
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
from reticent.outside import Averaged, Charge, Control, Direction, Gate, Open, Steady


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
    direction: Direction = Averaged()  # noqa: RUF009
    gate: Gate = Open()  # noqa: RUF009
    control: Control = Steady()  # noqa: RUF009
    optimizer: str = "sgd"

    def __repr__(self) -> str:
        said = ((f, getattr(self, f.name)) for f in fields(self))
        words = (
            f"{f.name}={value.__name__ if isinstance(value, type) else repr(value)}"
            for f, value in said
            if value != f.default
        )
        return f"Method({', '.join(words)})"

    def turned(self, settings: RoundSettings, number: int) -> RoundSettings:
        """The settings of one round, from those the run was planned with."""
        return self.control.turn(replace(settings, number=number))

    def gradient_event(self, settings: RoundSettings) -> Event:
        """What releasing one noisy gradient costs by itself."""
        return self.sampler.amplify(self.noise(settings.noise_multiplier).event(), settings)

    def charge(self, settings: RoundSettings) -> Charge:
        """What one round with these settings writes into the ledger."""
        return self.gate.charge(self.gradient_event(settings), settings)
