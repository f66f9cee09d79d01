"""DPIS (Wei et al. 2022), with four repairs: draw examples by their gradient norm, plan the noise by the norms' sum."""

from __future__ import annotations

from dataclasses import replace

from reticent.about import About
from reticent.errors import UnknownName
from reticent.inside import ByNorm, UnitDirection, UnitSum
from reticent.methods.method import Method
from reticent.methods.papers.dpsgd import dpsgd
from reticent.outside import NormPlan


def dpis(
    *,
    max_grad_norm: float = 0.1,
    spread: float = 5.0,
    phase: float = 0.8,
    norm_noise: float = 0.02,
    norms: str = "carry",
    adaptive_clip: bool = False,
    growth: float = 1.0,
    external_clip: float = 4.0,
    size_noise: float = 0.0,
    floor: float = 0.01,
) -> Method:
    """Importance sampling under a Renyi filter (Wei et al. 2022, algorithm 1); `norms="refresh"` is the paper's pass.

    >>> dpis(adaptive_clip=True).control.adaptive_clip
    True
    """
    if norms not in ("carry", "refresh"):
        raise UnknownName("way to know the norms", norms, ["carry", "refresh"])
    control = NormPlan(
        spread=spread,
        phase=phase,
        norm_noise=norm_noise,
        refresh=norms == "refresh",
        adaptive_clip=adaptive_clip,
        growth=growth,
        wide=external_clip,
        size_noise=size_noise,
        floor=floor,
    )
    base = replace(dpsgd(max_grad_norm=max_grad_norm), name="dpis", control=control)
    return replace(base, sampler=ByNorm(spread), bound=UnitDirection(), query=UnitSum(spread, floor))


ABOUT = About(
    name="dpis",
    make=dpis,
    gradient_cost="spread",
    title="DPIS",
    paper="Wei et al. 2022, DPIS: An Enhanced Mechanism for Differentially Private SGD with Importance Sampling",
    changes="draw (by gradient norm), bound (unit directions), control (noise planned by the released norm sum)",
    guarantee="proved: Renyi filter, one order fixed in advance; four repairs to the paper",
    equations={
        "eq. 7": "inside/dpis.py UnitSumQuery",
        "eq. 11": "inside/dpis.py NormTotal",
        "algorithm 1, lines 16-24": "inside/dpis.py ByNorm, UnitSumQuery",
        "section 4.2": "accounting/renyi/dpis.py ImportancePlan",
    },
    options={
        "spread": "how far a norm may grow until the example is looked at again (k)",
        "phase": "share of epochs planned as plain DP-SGD (a_E)",
        "norm_noise": "noise of the norm sum, as a share of the number of examples (sigma_K / N)",
        "norms": "carry: remember norms over epochs; refresh: look at all of them each epoch, as the paper does",
        "adaptive_clip": "let the clip norm follow the mean norm",
        "growth": "clip norm over mean norm (lambda)",
        "external_clip": "where norms are cut for the mean norm; the largest clip norm, over the first one (C* / C_1)",
        "size_noise": "noise on the number of examples, as a share of it (sigma_N / N); 0: it is public",
        "floor": "least norm remembered, as a share of the clip norm (g_L / C)",
    },
)
