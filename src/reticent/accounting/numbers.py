"""The public numbers of a run, as a user gives them, before they are events."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from reticent.accounting.claims.claimed import Orders
from reticent.accounting.events import Event, Gaussian, Subsampled
from reticent.accounting.pricing import Accountant
from reticent.errors import SettingError


@dataclass(frozen=True)
class Numbers:
    """Public numbers of a run; None where they are not given."""

    delta: float = 1e-5
    accountant: Accountant = "best"
    orders: Orders = "paper"
    sample_rate: float | None = None
    noise_multiplier: float | None = None
    steps: int | None = None
    validation_rate: float | None = None
    validation_noise: float | None = None
    beta: float = -1.0
    attempts: int | None = None
    accepted: int | None = None
    route: str | None = None
    cap: int | None = None
    max_rejections: int | None = None
    data_size: int | None = None
    batch_size: float | None = None
    epochs: int | None = None
    epsilon: float | None = None
    phase: float = 0.8
    kappa: tuple[float, ...] = ()
    size_noise: float | None = None
    statistics_noise: float | None = None
    shares: tuple[float, ...] = ()
    """The noise of each epoch as a share of the first one's, for methods that let it decay."""

    def need(self, method: str, *names: str) -> tuple[Any, ...]:
        """The values of these fields, or an error that says which flag is missing.

        >>> Numbers(steps=3).need("dpsgd", "steps")
        (3,)
        """
        missing = [name for name in names if getattr(self, name) is None]
        if missing:
            flags = ", ".join("--" + name.replace("_", "-") for name in missing)
            raise SettingError(f"{method} needs {flags}")
        return tuple(getattr(self, name) for name in names)

    def statistics(self) -> tuple[Event, ...]:
        """The two releases (means and mean squares) that normalise features, if there are any."""
        return () if self.statistics_noise is None else (Gaussian(self.statistics_noise),) * 2

    def completed(self) -> Numbers:
        """The rate from batch and data size, the steps from the epochs, where they are not given.

        >>> found = Numbers(data_size=1000, batch_size=100, epochs=2).completed()
        >>> found.sample_rate, found.steps
        (0.1, 20)
        """
        found = self
        if found.sample_rate is None and found.data_size and found.batch_size:
            if found.batch_size > found.data_size:
                raise SettingError(f"the batch size {found.batch_size:g} is above the data size {found.data_size}")
            found = replace(found, sample_rate=found.batch_size / found.data_size)
        if found.steps is None and found.epochs and found.sample_rate:
            found = replace(found, steps=math.ceil(found.epochs / found.sample_rate - 1e-9))
        return found


def poisson(rate: float, noise_multiplier: float) -> Event:
    """A Gaussian release on a Poisson draw, its numbers checked.

    >>> poisson(0.1, 1.0)
    Subsampled(rate=0.1, inner=Gaussian(noise_multiplier=1.0))
    """
    if not 0 < rate <= 1:
        raise SettingError(f"a rate is {rate}: it is expected batch size / number of examples, above 0, at most 1")
    if not noise_multiplier >= 0:
        raise SettingError(f"a noise multiplier is {noise_multiplier}: it must be 0 or more")
    return Subsampled(rate, Gaussian(noise_multiplier))
