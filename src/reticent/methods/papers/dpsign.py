"""DPSignSGD and DPSignAdam (Ghosh & Das 2024): step by the sign of the noisy gradient."""

from __future__ import annotations

from dataclasses import replace

from reticent.about import About
from reticent.methods.method import Method
from reticent.methods.papers.dpsgd import dpadam, dpsgd
from reticent.outside import Sign


def dpsign_sgd(*, noise_multiplier: float | None = None, max_grad_norm: float = 1.0) -> Method:
    """The sign of the noisy sum of clipped gradients (Ghosh & Das 2024, algorithm 3, noise on the sum).

    >>> dpsign_sgd(noise_multiplier=1.0).direction
    Sign()
    """
    base = dpsgd(noise_multiplier=noise_multiplier, max_grad_norm=max_grad_norm)
    return replace(base, name="dpsign_sgd", direction=Sign())


def dpsign_adam(*, noise_multiplier: float | None = None, max_grad_norm: float = 1.0) -> Method:
    """Adam fed with signs, which makes it an average of signs (Ghosh & Das 2024, algorithm 4).

    >>> dpsign_adam(noise_multiplier=1.0).optimizer
    'adam'
    """
    base = dpadam(noise_multiplier=noise_multiplier, max_grad_norm=max_grad_norm)
    return replace(base, name="dpsign_adam", direction=Sign())


ABOUT = (
    About(
        name="dpsign_sgd",
        make=dpsign_sgd,
        preset={"momentum": 0.0},
        title="DPSignSGD",
        paper="Ghosh & Das 2024, bottlenecked backpropagation",
        changes="direction: the sign of the noisy sum",
        guarantee="proved, as DP-SGD: the sign is post-processing",
        equations={"algorithm 3": "outside/directions.py Sign"},
        docs="docs/methods/dpsign.md",
    ),
    About(
        name="dpsign_adam",
        make=dpsign_adam,
        title="DPSignAdam",
        paper="Ghosh & Das 2024, bottlenecked backpropagation",
        changes="direction and optimizer: Adam fed with signs",
        guarantee="proved, as DP-SGD: the sign is post-processing",
        equations={"algorithm 4": "outside/directions.py Sign"},
        docs="docs/methods/dpsign.md",
    ),
)
