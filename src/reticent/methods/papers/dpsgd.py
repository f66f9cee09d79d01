"""DP-SGD and DP-Adam (Abadi et al. 2016): draw by coins, clip, add noise to the sum, step."""

from __future__ import annotations

from dataclasses import replace

from reticent.about import About
from reticent.methods.method import Method


def dpsgd(*, noise_multiplier: float | None = None, max_grad_norm: float = 1.0) -> Method:
    """Differentially private SGD (Abadi et al. 2016, algorithm 1).

    >>> dpsgd(noise_multiplier=1.1).max_grad_norm
    1.0
    """
    return Method(name="dpsgd", noise_multiplier=noise_multiplier, max_grad_norm=max_grad_norm)


def dpadam(*, noise_multiplier: float | None = None, max_grad_norm: float = 1.0) -> Method:
    """DP-SGD whose noisy gradient is given to Adam; the same privacy, since Adam sees released numbers only.

    >>> dpadam().optimizer
    'adam'
    """
    base = dpsgd(noise_multiplier=noise_multiplier, max_grad_norm=max_grad_norm)
    return replace(base, name="dpadam", optimizer="adam")


ABOUT = (
    About(
        name="dpsgd",
        make=dpsgd,
        kind="base",
        title="DP-SGD",
        paper="Abadi et al. 2016, Deep Learning with Differential Privacy",
        changes="nothing: this is the base",
        guarantee="proved (PLD or RDP of the planned rounds)",
        equations={
            "algorithm 1, sampling": "inside/draws.py Poisson",
            "algorithm 1, clip": "inside/bounds.py Clip",
            "algorithm 1, add noise": "inside/mechanisms.py GaussianNoise",
            "algorithm 1, descent": "run.py Run",
        },
    ),
    About(
        name="dpadam",
        make=dpadam,
        kind="base",
        title="DP-Adam",
        paper="Abadi et al. 2016, with Adam (Kingma & Ba 2015) on the noisy gradient",
        changes="optimizer",
        guarantee="proved, as DP-SGD: Adam sees released numbers only",
        docs="docs/methods/dpsgd.md",
    ),
)
