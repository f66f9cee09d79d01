"""Checks of clip norms by layer: together they are what is charged, and every parameter has one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import torch
from broken_checks import probes
from torch import Tensor

from reticent.inside import ByLayer
from reticent.inside.by_layer import Division
from reticent.methods import get


def layers_together_are_charged() -> None:
    """No probe of the audit contradicts any way to divide a gradient."""
    for by, share in (("layer", "equal"), ("parameter", "size"), ("second", "equal")):
        probes(get("layer_clip", noise_multiplier=1.0, by=by, share=share), ("ledger", "sensitivity", "noise"))


class _Loose(Division):
    def weights(self, norms: Tensor, sensitivity: float) -> Tensor:
        return torch.ones_like(norms)


class _Careless(ByLayer):
    def divide(self, shapes: Mapping[str, Sequence[int]]) -> Division:
        right = super().divide(shapes)
        return _Loose(right.part_of, right.shares)


def weights_of_a_careless_bound_are_cut() -> None:
    """Whoever wrote the bound, no example weighs more than is charged."""
    method = replace(get("layer_clip", noise_multiplier=1.0), bound=_Careless())
    probes(method, ("sensitivity",))


CHECKS: list[Callable[[], None]] = [layers_together_are_charged, weights_of_a_careless_bound_are_cut]
