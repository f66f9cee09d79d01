"""Mutants of the guard: each overlooks one kind of place that a forward pass can write into."""

from __future__ import annotations

from functools import partial
from typing import Any

import guard_checks as checks
import numpy as np
from broken_mutants import Mutant
from broken_mutants import mutant as any_mutant

from reticent.inside import guard
from reticent.inside.careful import OneByOne
from reticent.inside.guarding import holders, values, walk

MUTANTS: list[Mutant] = []
mutant = partial(any_mutant, among=MUTANTS)


@mutant(holders, "same", checks.attributes_are_looked_at)
def anything_passes_for_the_same(_right: Any) -> Any:
    return lambda before, now: True


@mutant(walk, "holder_of", checks.containers_are_looked_into)
def lists_are_not_looked_into(right: Any) -> Any:
    return lambda where, thing: None if isinstance(thing, list) else right(where, thing)


@mutant(walk, "_of_object", checks.objects_are_looked_into)
def objects_of_a_module_are_not_looked_into(right: Any) -> Any:
    return lambda where, thing, reached: right(where, thing, reached) if where.parent is None else iter(())


@mutant(walk, "value_of", checks.arrays_are_compared)
def arrays_are_not_compared(right: Any) -> Any:
    return lambda where, value, trained: None if isinstance(value, np.ndarray) else right(where, value, trained)


@mutant(values, "_STATES", checks.generators_are_compared)
def generators_are_not_compared(_right: Any) -> Any:
    return []


@mutant(walk, "_open", checks.classes_are_looked_at)
def classes_are_nobodys(right: Any) -> Any:
    return lambda thing: not isinstance(thing, type) and right(thing)


@mutant(walk, "_of_function", checks.functions_are_looked_into)
def functions_keep_nothing(_right: Any) -> Any:
    return lambda where, function, reached: iter(())


@mutant(walk, "_hooks_of_all_modules", checks.gradients_are_not_watched)
def only_forward_passes_have_hooks(right: Any) -> Any:
    return lambda: right()[:2]


@mutant(guard, "walk", checks.losses_are_looked_at)
def losses_keep_nothing(right: Any) -> Any:
    return lambda model, loss, trained: right(model, trained=trained)


@mutant(values.Numbers, "moved", checks.memory_is_not_exchanged)
def memory_may_be_exchanged(_right: Any) -> Any:
    return lambda self: False


@mutant(values.TrainedVector, "changed", checks.trained_values_are_compared)
def trained_values_are_believed(_right: Any) -> Any:
    return lambda self: False


@mutant(values.Numbers, "_differs", checks.frozen_values_are_compared)
def versions_are_believed(_right: Any) -> Any:
    return lambda self: False


@mutant(OneByOne, "_alone", checks.failing_halfway_tells_nothing)
def what_failed_halfway_stays(right: Any) -> Any:
    return lambda self, model, row: right(OneByOne(self.loss), model, row)
