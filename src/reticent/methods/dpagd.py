"""DPAGD (Lee & Kifer 2018): full-batch gradient descent that buys accuracy only when a step does not help."""

from __future__ import annotations

from dataclasses import replace

from reticent.inside import Everyone
from reticent.methods.dpsgd import dpsgd
from reticent.methods.method import Method
from reticent.outside import BestLength


def dpagd(
    *,
    max_grad_norm: float = 3.0,
    loss_limit: float = 3.0,
    choices: int = 21,
    longest: float = 2.0,
    raise_by: float = 0.1,
    splits: int = 60,
) -> Method:
    """Adaptive per-iteration budget in zCDP (Lee & Kifer 2018, algorithm 1); the step length is chosen privately.

    >>> dpagd().gate.choices
    21
    """
    gate = BestLength(choices, longest, loss_limit, raise_by, splits)
    return replace(dpsgd(max_grad_norm=max_grad_norm), name="dpagd", sampler=Everyone(), gate=gate)
