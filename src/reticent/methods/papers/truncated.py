"""DP-SGD on Poisson draws that are cut to a largest size."""

from __future__ import annotations

from dataclasses import replace

from reticent.about import About
from reticent.inside import Capped
from reticent.methods.method import Method
from reticent.methods.papers.dpsgd import dpsgd


def truncated(
    *,
    noise_multiplier: float | None = None,
    max_grad_norm: float = 1.0,
    most: int | None = None,
    deviations: float = 6.0,
) -> Method:
    """Poisson draws with a cap on their size (arXiv 2508.15089).

    >>> truncated(noise_multiplier=1.0, most=100).sampler
    Capped(most=100, deviations=6.0)
    """
    base = dpsgd(noise_multiplier=noise_multiplier, max_grad_norm=max_grad_norm)
    return replace(base, name="truncated", sampler=Capped(most, deviations))


ABOUT = About(
    name="truncated",
    make=truncated,
    kind="baseline",
    title="DP-SGD, draws with a cap",
    paper="arXiv 2508.15089 (2025), Tighter Privacy Analysis for Truncated Poisson Sampling",
    changes="draw: Poisson, of more than a cap so many are chosen by chance",
    guarantee="proved: cut draws are charged as batches of a fixed size; not for adding or removing an example",
    equations={
        "truncated Poisson sampling": "inside/sized.py Capped",
        "how often a draw is cut": "accounting/renyi/swapped.py cut_short",
    },
    options={
        "most": "the most examples in a round",
        "deviations": "the cap, where most is not given: so many deviations of a draw's size above the batch size",
    },
    docs="docs/draws.md",
)
