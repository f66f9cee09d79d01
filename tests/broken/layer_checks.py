"""Checks of clip norms by layer: together they are what is charged, and every parameter has one."""

from __future__ import annotations

from collections.abc import Callable

from broken_checks import probes

from reticent.methods import get


def layers_together_are_charged() -> None:
    """No probe of the audit contradicts any way to divide a gradient."""
    for by in ("layer", "parameter", "second"):
        for share in ("equal", "size"):
            probes(get("layer_clip", noise_multiplier=1.0, by=by, share=share), ("ledger", "sensitivity", "noise"))


CHECKS: list[Callable[[], None]] = [layers_together_are_charged]
