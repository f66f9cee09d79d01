"""Mutants of directions that remember."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import filter_checks as checks
from broken_mutants import Mutant
from broken_mutants import mutant as any_mutant

from reticent.loop import Loop
from reticent.outside import Kalman
from reticent.standing import Standing

MUTANTS: list[Mutant] = []
mutant = partial(any_mutant, among=MUTANTS)


@mutant(Loop, "_candidate", checks.dropped_rounds_are_forgotten)
def dropped_gradient_stays_in_the_filter(right: Any) -> Any:
    def candidate(self: Any, settings: Any, standing: Any, number: int, **how: Any) -> Any:
        outcome, _ = right(self, settings, standing, number, **how)
        here = self.task.flat.vector
        return outcome, self._direction(here + 1, settings, here, standing.remembered)[1]

    return candidate


@mutant(Kalman, "follow", checks.dropped_rounds_are_forgotten)
def estimate_changed_in_place(right: Any) -> Any:
    def follow(self: Any, released: Any, settings: Any, here: Any, remembered: Any) -> Any:
        found, known = right(self, released, settings, here, remembered)
        if remembered:
            remembered["estimate"].copy_(found)
        return found, known

    return follow


@mutant(Standing, "restored", checks.filters_go_on_where_they_were)
def checkpoint_without_the_filter(right: Any) -> Any:
    return lambda self, tree: replace(right(self, tree), remembered={})
