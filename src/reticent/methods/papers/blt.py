"""BLT (Dvijotham et al. 2024, McMahan et al. 2024): noise that later rounds take away, through a few buffers."""

from __future__ import annotations

from dataclasses import replace

from reticent.about import About
from reticent.inside import Buffers, MixedSum, PartsInTurn, StreamNoise
from reticent.methods.method import Method
from reticent.methods.papers.dpsgd import dpsgd
from reticent.outside import Unmixed


def blt(
    *,
    noise_multiplier: float | None = None,
    max_grad_norm: float = 1.0,
    buffers: int = 3,
    workload_momentum: float = 0.0,
) -> Method:
    """Correlated noise by a buffered linear Toeplitz matrix, on parts that take part in turn (McMahan et al. 2024).

    >>> blt(noise_multiplier=1.0, buffers=2).sampler
    PartsInTurn(mixing=Buffers(buffers=2, momentum=0.0, rounds=0, parts=0))
    """
    base = dpsgd(noise_multiplier=noise_multiplier, max_grad_norm=max_grad_norm)
    mixing = Buffers(buffers, workload_momentum)
    return replace(
        base,
        name="blt",
        sampler=PartsInTurn(mixing),
        query=MixedSum(mixing),
        noise=StreamNoise(mixing),
        direction=Unmixed(mixing),
    )


ABOUT = About(
    name="blt",
    make=blt,
    kind="baseline",
    title="BLT",
    paper="McMahan et al. 2024, A Hassle-free Algorithm for Strong Differential Privacy in Federated Learning Systems",
    changes="draw (parts in turn), query (sums mixed through buffers), noise, direction: correlated noise",
    guarantee="proved: one Gaussian release of the whole run, at the sensitivity of the worst part; no chance counted",
    equations={
        "buffered linear Toeplitz matrix": "accounting/matrices/buffered.py Buffered",
        "optimised for the error of the prefix sums": "accounting/matrices/buffered.py optimised",
        "sensitivity at a least separation": "accounting/matrices/toeplitz.py sensitivity",
        "C x + z": "inside/mixed.py MixedQuery",
        "C^-1": "outside/unmixed.py Unmixed",
    },
    options={
        "buffers": "vectors that are remembered on both sides: 1 to 4",
        "workload_momentum": "the momentum that the matrix is optimised for; what the optimizer has, it does not know",
    },
)
