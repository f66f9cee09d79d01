"""Norms of every example's gradient, and weighted sums of the gradients, without writing each one out."""

from __future__ import annotations

from reticent.gradients.checking import check
from reticent.gradients.engine import norms, norms_and_sum
from reticent.gradients.losses_alone import losses_of
from reticent.gradients.second_look import gradients_are_own, losses_are_own, must_not_be_released

__all__ = [
    "check",
    "gradients_are_own",
    "losses_are_own",
    "losses_of",
    "must_not_be_released",
    "norms",
    "norms_and_sum",
]
