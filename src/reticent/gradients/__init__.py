"""Norms of every example's gradient, and weighted sums of the gradients, without writing each one out."""

from __future__ import annotations

from reticent.gradients.checking import check
from reticent.gradients.engine import norms, norms_and_sum

__all__ = ["check", "norms", "norms_and_sum"]
