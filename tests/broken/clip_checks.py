"""Checks of a clip norm that follows the examples: what it counts is paid for, and nothing else moves it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from broken_checks import probes

from reticent.audits.toy import SIZE, examples, make_run
from reticent.methods import get

FOLLOWING = get("quantile_clip", noise_multiplier=1.0, count_weight=1.0)


def count_is_charged() -> None:
    """No probe of the audit contradicts sum and count together."""
    probes(FOLLOWING, ("ledger", "sensitivity", "noise"))


def clip_norm_follows_released_numbers_only() -> None:
    """Two runs that released the same have the same clip norm, whatever the examples are."""
    found = []
    for scale in (1.0, 3.0):
        run = make_run(FOLLOWING, examples(scale), batch_size=SIZE, rounds=1, seed=0)
        probe = run.watch()
        run.step()
        (opening,) = probe.openings
        counted = float(opening.released[-1]) / FOLLOWING.query.unit(run.plan.settings)
        found.append((run.settings.max_grad_norm, FOLLOWING.gate.moved(counted, run.plan.settings)))
    for followed, expected in found:
        assert followed == expected
    assert torch.isfinite(torch.tensor(found)).all()


CHECKS: list[Callable[[], None]] = [count_is_charged, clip_norm_follows_released_numbers_only]
