"""DP-SGD on batches of a fixed size, drawn without putting back."""

from __future__ import annotations

from dataclasses import replace

from reticent.about import About
from reticent.inside import OfFixedSize
from reticent.methods.method import Method
from reticent.methods.papers.dpsgd import dpsgd


def fixed_size(*, noise_multiplier: float | None = None, max_grad_norm: float = 1.0) -> Method:
    """Batches of exactly the batch size, all equally likely (Wang, Balle & Kasiviswanathan 2019; Zhu et al. 2022).

    >>> fixed_size(noise_multiplier=1.0).sampler
    OfFixedSize()
    """
    base = dpsgd(noise_multiplier=noise_multiplier, max_grad_norm=max_grad_norm)
    return replace(base, name="fixed_size", sampler=OfFixedSize())


ABOUT = About(
    name="fixed_size",
    make=fixed_size,
    kind="baseline",
    title="DP-SGD, batches of a fixed size",
    paper="Wang, Balle & Kasiviswanathan 2019, Subsampled Renyi Differential Privacy; Zhu, Dong & Wang 2022",
    changes="draw: batches of a fixed size, without putting back",
    guarantee="proved: one example more is another one less, so the noise counts half",
    equations={
        "subset sampling": "inside/sized.py OfFixedSize",
        "Zhu et al., theorem 11": "accounting/renyi/swapped.py swapped",
    },
    docs="docs/draws.md",
)
