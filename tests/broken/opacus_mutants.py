"""Mutants of a loop of the user's own: another draw, no copy, a mean that stays, steps that do not count."""

from __future__ import annotations

from typing import Any

import opacus_checks as checks
from broken_mutants import Mutant

from reticent.inside import Division, shown
from reticent.inside.shown import Window
from reticent.integrations.opacus import program
from reticent.integrations.opacus.accountant import OpacusAccountant
from reticent.integrations.opacus.norms import ByNorms
from reticent.integrations.opacus.program import Program


def _later(right: Any) -> Any:
    return lambda self, number: right(self, number + 1)


def _uncopied(_right: Any) -> Any:
    return lambda batch, change: batch


def _divided(right: Any) -> Any:
    return lambda operation, found, rows: right(operation, found, rows) / rows


def _alike(_right: Any) -> Any:
    return lambda self, other: True


def _one_less(right: Any) -> Any:
    return property(lambda self: [(noise, rate, max(0, steps - 1)) for noise, rate, steps in right.fget(self)])


def _longest(_right: Any) -> Any:
    return property(lambda self: max(norm for _, norm in self.norms))


def _unshared(_right: Any) -> Any:
    def divide(self: Any, shapes: Any) -> Division:
        made = object.__new__(Division)
        vars(made).update(part_of={name: place for place, name in enumerate(shapes)}, shares=(1.0,) * len(self.norms))
        return made

    return divide


MUTANTS = [
    Mutant("another_draw_is_shown", Window, "_draw", _later, checks.what_is_shown_is_drawn),
    Mutant("batches_are_shown_without_a_copy", shown, "map_tensors", _uncopied, checks.what_is_shown_is_a_copy),
    Mutant("heard_mean_stays", program, "_unreduced", _divided, checks.heard_losses_stand_alone),
    Mutant("other_losses_pass_for_the_same", Program, "__eq__", _alike, checks.a_number_from_the_batch_is_noticed),
    Mutant("last_step_is_not_counted", OpacusAccountant, "history", _one_less, checks.every_step_is_in_the_history),
    Mutant("noise_for_the_longest_tensor", ByNorms, "together", _longest, checks.norms_of_tensors_are_charged_together),
    Mutant("each_tensor_as_the_whole", ByNorms, "divide", _unshared, checks.norms_of_tensors_are_charged_together),
]
