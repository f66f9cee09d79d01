"""DP-SGD with a clip norm for each layer or group of parameters (McMahan et al. 2018; He et al. 2023)."""

from __future__ import annotations

from dataclasses import replace

from reticent.about import About
from reticent.inside import ByLayer
from reticent.inside.by_layer import Share
from reticent.methods.method import Method
from reticent.methods.papers.dpsgd import dpsgd


def layer_clip(
    *,
    noise_multiplier: float | None = None,
    max_grad_norm: float = 1.0,
    by: str = "layer",
    share: Share = "equal",
) -> Method:
    """Clip each layer's gradient by itself; together they are no longer than the clip norm.

    >>> layer_clip(noise_multiplier=1.0, by="parameter").bound
    ByLayer(by='parameter', share='equal')
    """
    base = dpsgd(noise_multiplier=noise_multiplier, max_grad_norm=max_grad_norm)
    return replace(base, name="layer_clip", bound=ByLayer(by, share))


ABOUT = About(
    name="layer_clip",
    make=layer_clip,
    kind="baseline",
    title="Clipping by layer",
    paper="McMahan et al. 2018, Learning Differentially Private Recurrent Language Models; He et al. 2023",
    changes="bound: a clip norm for each layer, or group of parameters",
    guarantee="proved, as DP-SGD: the squares of the clip norms add up to that of one",
    equations={"per-layer clipping, C_l = C / sqrt(L)": "inside/by_layer.py ByLayer"},
    options={
        "by": "layer, parameter, or beginnings of the names of parameters, separated by commas: a group each",
        "share": "equal: all groups have the same clip norm; size: one that grows with the root of their weights",
    },
)
