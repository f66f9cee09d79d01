"""DPAGD (Lee & Kifer 2018): full-batch gradient descent that buys accuracy only when a step does not help."""

from __future__ import annotations

from dataclasses import replace

from reticent.about import About
from reticent.inside import Everyone
from reticent.methods.method import Method
from reticent.methods.papers.dpsgd import dpsgd
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


ABOUT = About(
    name="dpagd",
    make=dpagd,
    kind="baseline",
    preset={"epochs": 60.0},
    title="DPAGD",
    paper="Lee & Kifer 2018, Concentrated Differentially Private Gradient Descent with Adaptive per-Iteration Budget",
    changes="draw (everyone), gate (private choice of the step length; less noise when none helps)",
    guarantee="proved: zCDP releases under a Renyi filter",
    equations={"algorithm 1": "outside/dpagd.py BestLength", "NoisyMax": "inside/dpagd.py BestOf"},
    options={
        "loss_limit": "cut of an example's loss in the choice (C_obj)",
        "choices": "step lengths to choose from, 0 included",
        "longest": "the longest of them",
        "raise_by": "by which share the gradient's budget rises when no step helps (gamma)",
        "splits": "gradients the budget is cut into at first",
    },
)
