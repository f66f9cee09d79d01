"""Mutants of losses: a mean over the batch that stays, real rows that are tried, weights that are not compared."""

from __future__ import annotations

from typing import Any

import loss_checks as checks
from broken_mutants import Mutant

from reticent import describing
from reticent.inside import Task, converting
from reticent.losses.pairing import Paired


def _divided(right: Any) -> Any:
    return lambda self, values, target: right(self, values, target) / len(target)


def _real(_right: Any) -> Any:
    return lambda batch, rows: batch


def _as_printed(_right: Any) -> Any:
    return lambda value, again: repr(value)


def _everybody(_right: Any) -> Any:
    return property(lambda self: 10**6)


MUTANTS = [
    Mutant(
        "losses_are_summed_of_all_at_once", Task, "together", _everybody, checks.losses_are_summed_as_they_were_checked
    ),
    Mutant("mean_over_the_batch_stays", Paired, "_for_each", _divided, checks.losses_stand_alone),
    Mutant("losses_are_tried_on_real_rows", converting, "blank", _real, checks.nothing_real_is_tried),
    Mutant("weights_of_a_loss_are_not_compared", describing, "_module", _as_printed, checks.another_loss_is_noticed),
]
