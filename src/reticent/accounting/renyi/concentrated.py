"""Zero-concentrated differential privacy: one number rho, for full-batch methods whose budget is spent adaptively."""

from __future__ import annotations

import math
from functools import partial

from scipy.optimize import brentq, minimize_scalar

from reticent.accounting.events import Composed, Concentrated, Event, Gaussian, Laplace, NoisyMax
from reticent.accounting.renyi.conversions import Conversion, overhead
from reticent.errors import SettingError


def rho(event: Event) -> float:
    """The least known rho with which an event is rho-zCDP; infinite where none is known (Bun & Steinke 2016).

    >>> rho(Gaussian(2.0)), rho(NoisyMax(0.2))
    (0.125, 0.0200...)
    """
    match event:
        case Gaussian(noise_multiplier) if noise_multiplier > 0:
            return 1 / (2 * noise_multiplier**2)
        case Laplace(noise_multiplier) if noise_multiplier > 0:
            return 1 / (2 * noise_multiplier**2)
        case NoisyMax(epsilon):
            return epsilon**2 / 2
        case Concentrated(value):
            return value
        case Composed(parts):
            return sum(map(rho, parts))
        case _:
            return math.inf


def epsilon_of(rho: float, delta: float, conversion: Conversion = "new") -> float:
    """The epsilon of rho-zCDP at `delta`, over all orders ("old": rho + 2 sqrt(rho ln 1/delta), Bun & Steinke 2016).

    >>> round(epsilon_of(0.02081994, 1e-5, "old"), 6), round(epsilon_of(0.030557, 1e-5), 3)
    (1.0, 1.0)
    """
    if conversion == "old":
        return rho + 2 * math.sqrt(-rho * math.log(delta))
    start = math.log(math.sqrt(-math.log(delta) / rho)) if rho > 0 else 0.0
    if rho == 0:
        return 0.0

    def at(log_excess: float) -> float:
        order = 1 + math.exp(log_excess)
        return order * rho + float(overhead(order, delta))

    return max(0.0, float(minimize_scalar(at, bounds=(start - 3, start + 3), method="bounded").fun))


def rho_for(epsilon: float, delta: float, conversion: Conversion = "new") -> float:
    """The largest rho that (epsilon, delta) affords.

    >>> round(rho_for(1.0, 1e-5, "old"), 8), round(rho_for(4.0, 1e-5), 6)
    (0.02081994, 0.373144)
    """
    if not epsilon > 0:
        raise SettingError(f"epsilon is {epsilon}: it must be above 0")
    log_term = -math.log(delta)
    closed = (math.sqrt(log_term + epsilon) - math.sqrt(log_term)) ** 2
    if conversion == "old":
        return closed
    above = closed
    while epsilon_of(above, delta) <= epsilon:
        above *= 4
    left = partial(_too_much, epsilon=epsilon, delta=delta)
    return float(brentq(left, closed * 0.999, above, xtol=closed * 1e-10, rtol=1e-12)) * (1 - 1e-9)


def _too_much(rho: float, epsilon: float, delta: float) -> float:
    return epsilon_of(rho, delta) - epsilon
