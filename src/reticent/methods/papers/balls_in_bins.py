"""DP-SGD on balls in bins: an epoch's rounds share out the examples, each by a coin of its own."""

from __future__ import annotations

from dataclasses import replace

from reticent.about import About
from reticent.inside import BallsInBins
from reticent.methods.method import Method
from reticent.methods.papers.dpsgd import dpsgd


def balls_in_bins(*, noise_multiplier: float | None = None, max_grad_norm: float = 1.0) -> Method:
    """Each example in one round of every epoch, chosen by chance (Chua et al. 2025).

    >>> balls_in_bins(noise_multiplier=1.0).sampler
    BallsInBins()
    """
    base = dpsgd(noise_multiplier=noise_multiplier, max_grad_norm=max_grad_norm)
    return replace(base, name="balls_in_bins", sampler=BallsInBins())


ABOUT = About(
    name="balls_in_bins",
    make=balls_in_bins,
    kind="baseline",
    title="DP-SGD, balls in bins",
    paper="Chua et al. 2025, Balls-and-Bins Sampling for DP-SGD",
    changes="draw: each example in one round of every epoch, by chance",
    guarantee="proved: the worst pair of an epoch (PLD or RDP), which is told less than by coins",
    equations={
        "balls-and-bins sampling": "inside/bins.py BallsInBins",
        "the worst pair of an epoch": "accounting/losses/allocated.py allocated_loss",
    },
    docs="docs/draws.md",
)
