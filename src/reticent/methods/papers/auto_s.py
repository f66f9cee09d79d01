"""AUTO-S (Bu et al. 2023): normalise every gradient instead of clipping it."""

from __future__ import annotations

from dataclasses import replace

from reticent.about import About
from reticent.inside import Normalise
from reticent.methods.method import Method
from reticent.methods.papers.dpsgd import dpsgd


def auto_s(*, noise_multiplier: float | None = None, stability: float = 0.01) -> Method:
    """Automatic clipping: weight 1 / (norm + gamma), so that no clip norm need be chosen (Bu et al. 2023).

    >>> auto_s(noise_multiplier=1.0).bound
    Normalise(stability=0.01)
    """
    return replace(dpsgd(noise_multiplier=noise_multiplier), name="auto_s", bound=Normalise(stability))


ABOUT = About(
    name="auto_s",
    make=auto_s,
    kind="baseline",
    title="AUTO-S",
    paper="Bu et al. 2023, Automatic Clipping",
    changes="bound: normalise instead of clip",
    guarantee="proved, as DP-SGD with sensitivity 1",
    equations={"AUTO-S": "inside/bounds.py Normalise"},
    options={"stability": "added to every norm (gamma)"},
)
