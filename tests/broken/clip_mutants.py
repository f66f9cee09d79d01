"""Mutants of the clip norm that follows the examples."""

from __future__ import annotations

from functools import partial
from typing import Any

import clip_checks as checks
from broken_mutants import Mutant
from broken_mutants import mutant as any_mutant

from reticent.inside.quantile import CountedSumQuery
from reticent.outside import Outcome, QuantileClip

MUTANTS: list[Mutant] = []
mutant = partial(any_mutant, among=MUTANTS)


@mutant(CountedSumQuery, "sensitivity", checks.count_is_charged)
def count_that_nobody_pays_for(_right: Any) -> Any:
    return property(lambda self: self.bound.sensitivity(self.settings))


@mutant(QuantileClip, "settle", checks.clip_norm_follows_released_numbers_only)
def clip_norm_from_the_sealed_count(_right: Any) -> Any:
    def settle(self: Any, proposal: Any) -> Outcome:
        sealed = float(proposal.sealed._value[-1]) / proposal.query.rule.unit(proposal.settings)
        return Outcome(kept=True, max_grad_norm=self.moved(sealed, proposal.settings))

    return settle
