"""DOPPLER (Zhang et al. 2024): DP-SGD whose noisy gradients pass a low-pass filter."""

from __future__ import annotations

from dataclasses import replace

from reticent.about import About
from reticent.errors import require
from reticent.methods.method import Method
from reticent.methods.papers.dpsgd import dpsgd
from reticent.outside import LowPass


def doppler(
    *, noise_multiplier: float | None = None, max_grad_norm: float = 1.0, smoothing: float = 0.9, taps: int = 2
) -> Method:
    """Released gradients through a low-pass filter with one pole (Zhang et al. 2024).

    >>> doppler(noise_multiplier=1.0, smoothing=0.5, taps=1).direction
    LowPass(inputs=(0.5,), outputs=(-0.5,))
    """
    require(0 <= smoothing < 1, f"smoothing must be 0 or more and below 1, not {smoothing}")
    require(taps >= 1 and taps == int(taps), f"taps must be a whole number, 1 or more, not {taps}")
    base = dpsgd(noise_multiplier=noise_multiplier, max_grad_norm=max_grad_norm)
    even = (1 - smoothing) / int(taps)
    return replace(base, name="doppler", direction=LowPass((even,) * int(taps), (-smoothing,)))


ABOUT = About(
    name="doppler",
    make=doppler,
    kind="baseline",
    title="DOPPLER",
    paper="Zhang et al. 2024, DOPPLER: Differentially Private Optimizers with Low-pass Filter",
    changes="direction: a low-pass filter over released gradients",
    guarantee="proved, as DP-SGD: the filter sees released numbers only",
    equations={"the filter, and its gain in the first rounds": "outside/low_pass.py LowPass"},
    options={
        "smoothing": "how much of the last output is in the next (-a_1); 0 and one tap are DP-SGD",
        "taps": "over so many of the last gradients the filter takes the mean before that",
    },
)
