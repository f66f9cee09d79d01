"""BandMF (Choquette-Choo et al. 2023): DP-SGD with noise that later rounds take away again."""

from __future__ import annotations

from dataclasses import replace

from reticent.about import About
from reticent.inside import Bands, Cyclic, MixedSum
from reticent.methods.method import Method
from reticent.methods.papers.dpsgd import dpsgd
from reticent.outside import Unmixed


def band_mf(
    *,
    noise_multiplier: float | None = None,
    max_grad_norm: float = 1.0,
    bands: int = 8,
    matrix: str = "optimised",
    workload_momentum: float = 0.0,
) -> Method:
    """Correlated noise by a banded matrix, on draws from parts in turn (Choquette-Choo et al. 2023, algorithm 1).

    >>> band_mf(noise_multiplier=1.0, bands=4).sampler
    Cyclic(bands=4)
    """
    base = dpsgd(noise_multiplier=noise_multiplier, max_grad_norm=max_grad_norm)
    mixing = Bands(bands, matrix, workload_momentum)
    return replace(base, name="band_mf", sampler=Cyclic(bands), query=MixedSum(mixing), direction=Unmixed(mixing))


ABOUT = About(
    name="band_mf",
    make=band_mf,
    kind="baseline",
    title="BandMF",
    paper="Choquette-Choo et al. 2023, (Amplified) Banded Matrix Factorization: A unified approach to private training",
    changes="draw (parts in turn), query (sums mixed over rounds), direction: correlated noise",
    guarantee="proved: an example is told of once in as many rounds as there are bands, as by one step of DP-SGD",
    equations={
        "banded strategy matrix, columns of length 1": "accounting/matrices/banded.py optimised",
        "sampling in cycles": "inside/banded.py Cyclic",
        "C x + z": "inside/mixed.py MixedQuery",
        "C^-1": "outside/unmixed.py Unmixed",
    },
    options={
        "bands": "bands of the matrix, and parts of the examples: more is less noise in the end, and less chance",
        "matrix": "optimised for the rounds of the run, or square-root: of the prefix sums, cut short",
        "workload_momentum": "the momentum that the matrix is optimised for; what the optimizer has, it does not know",
    },
)
