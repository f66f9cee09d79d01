"""DiSK (Zhang et al. 2025): DP-SGD whose noisy gradients pass a simplified Kalman filter."""

from __future__ import annotations

from dataclasses import replace

from reticent.about import About
from reticent.methods.method import Method
from reticent.methods.papers.dpsgd import dpsgd
from reticent.outside import Kalman


def disk(*, noise_multiplier: float | None = None, max_grad_norm: float = 1.0, gain: float = 0.7) -> Method:
    """A running estimate of the gradient, corrected by each released one (Zhang et al. 2025, one gradient a round).

    >>> disk(noise_multiplier=1.0, gain=0.5).direction
    Kalman(gain=0.5)
    """
    base = dpsgd(noise_multiplier=noise_multiplier, max_grad_norm=max_grad_norm)
    return replace(base, name="disk", direction=Kalman(gain))


ABOUT = About(
    name="disk",
    make=disk,
    kind="baseline",
    title="DiSK",
    paper="Zhang et al. 2025, DiSK: Differentially Private Optimizer with Simplified Kalman Filter for Noise Reduction",
    changes="direction: a Kalman filter over released gradients, each asked for a little ahead",
    guarantee="proved, as DP-SGD: the filter sees released numbers only",
    equations={"simplified filter, gamma = (1 - kappa) / kappa": "outside/kalman.py Kalman"},
    options={"gain": "how far a released gradient corrects the estimate (kappa); 1 is DP-SGD"},
)
