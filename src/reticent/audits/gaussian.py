"""The Gaussian trade-off: what mu-GDP means in epsilon and delta."""

from __future__ import annotations

import math

from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr


def gdp_delta(mu: float, epsilon: float) -> float:
    """delta(epsilon) of mu-GDP (Dong et al. 2022, cor. 2.13).

    >>> round(gdp_delta(1.0, 0.0), 4)
    0.3829
    """
    if mu == 0:
        return max(0.0, -math.expm1(epsilon))
    far = math.exp(min(epsilon + float(log_ndtr(-epsilon / mu - mu / 2)), 0.0))
    return max(0.0, float(ndtr(-epsilon / mu + mu / 2)) - far)


def gdp_epsilon(mu: float, delta: float) -> float:
    """The smallest epsilon of mu-GDP at `delta`.

    >>> round(gdp_epsilon(1.0, 1e-5), 4)
    4.3772
    """
    if gdp_delta(mu, 0.0) <= delta:
        return 0.0
    top = mu * mu / 2 + mu * 40
    return float(brentq(lambda epsilon: gdp_delta(mu, epsilon) - delta, 0.0, top, xtol=1e-12))
