"""Mutants of views."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import view_checks as checks
from broken_mutants import Mutant
from broken_mutants import mutant as any_mutant

from reticent.gradients.grouped import flattened
from reticent.inside.views import Views

MUTANTS: list[Mutant] = []
mutant = partial(any_mutant, among=MUTANTS)


@mutant(Views, "seen", checks.an_example_with_its_views_is_one)
def each_view_bounded_by_itself(right: Any) -> Any:
    return lambda self, batch, index, secret: flattened(right(self, batch, index, secret))


@mutant(Views, "seen", checks.an_example_with_its_views_is_one)
def views_of_a_neighbour(right: Any) -> Any:
    def seen(self: Any, batch: Any, index: Any, secret: int) -> Any:
        found = right(self, batch, index, secret)
        found.rows[0][:, 1] = found.rows[0][:, 1].roll(1, 0)
        return found

    return seen


@mutant(Views, "_coins", checks.views_are_the_same_when_a_round_is_asked_again)
def coins_by_the_place_in_the_draw(right: Any) -> Any:
    return lambda self, number, view, secret: right(self, np.arange(len(number)), view, secret)
