"""DPIS (Wei et al. 2022), with four repairs: draw examples by their gradient norm, plan the noise by the norms' sum."""

from __future__ import annotations

from dataclasses import replace

from reticent.errors import UnknownName
from reticent.inside import ByNorm, UnitDirection, UnitSum
from reticent.methods.dpsgd import dpsgd
from reticent.methods.method import Method
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
    )
    base = replace(dpsgd(max_grad_norm=max_grad_norm), name="dpis", control=control)
    return replace(base, sampler=ByNorm(spread), bound=UnitDirection(), query=UnitSum(spread, floor))
