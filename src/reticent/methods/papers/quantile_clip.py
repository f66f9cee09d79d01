"""DP-SGD with quantile-adaptive clipping (Andrew et al. 2021): the clip norm follows the norms, by a noisy count."""

from __future__ import annotations

from dataclasses import replace

from reticent.about import About
from reticent.inside import CountedSum
from reticent.methods.method import Method
from reticent.methods.papers.dpsgd import dpsgd
from reticent.outside import QuantileClip


def quantile_clip(
    *,
    noise_multiplier: float | None = None,
    max_grad_norm: float = 1.0,
    quantile: float = 0.5,
    clip_rate: float = 0.2,
    count_weight: float = 0.1,
) -> Method:
    """Clip where `quantile` of the gradients are left as they are (Andrew et al. 2021, algorithm 1).

    >>> quantile_clip(noise_multiplier=1.0, quantile=0.9).gate
    QuantileClip(quantile=0.9, rate=0.2)
    """
    base = dpsgd(noise_multiplier=noise_multiplier, max_grad_norm=max_grad_norm)
    gate = QuantileClip(quantile, clip_rate)
    return replace(base, name="quantile_clip", query=CountedSum(count_weight), gate=gate)


ABOUT = About(
    name="quantile_clip",
    make=quantile_clip,
    kind="baseline",
    title="Quantile clipping",
    paper="Andrew et al. 2021, Differentially Private Learning with Adaptive Clipping",
    changes="query (a count beside the sum), gate: the clip norm follows a quantile of the norms",
    guarantee="proved, as DP-SGD: sum and count are one answer with one noise",
    equations={
        "eq. 1, geometric update": "outside/quantile.py QuantileClip.moved",
        "theorem 1": "inside/quantile.py CountedSumQuery.sensitivity",
    },
    options={
        "quantile": "share of the gradients that the clip norm leaves as they are (gamma)",
        "clip_rate": "how fast the clip norm follows (eta_C)",
        "count_weight": "what one example counts, in clip norms: more is a better count and more noise on the gradient",
    },
)
