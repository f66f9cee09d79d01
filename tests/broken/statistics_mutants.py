"""Mutants of released statistics."""

from __future__ import annotations

from functools import partial
from typing import Any

import statistics_checks as checks
import torch
from broken_mutants import Mutant
from broken_mutants import mutant as any_mutant

import reticent.inside.labelled_rows as labelled_rows
import reticent.inside.least_squares as least_squares
from reticent.inside import ClassSums

MUTANTS: list[Mutant] = []
mutant = partial(any_mutant, among=MUTANTS)


@mutant(labelled_rows, "enforced", checks.no_example_moves_the_statistics_further_than_is_charged)
def rows_that_are_not_cut(_right: Any) -> Any:
    return lambda _bound, norms, _settings: torch.ones_like(norms)


@mutant(least_squares, "target_length", checks.no_example_moves_the_statistics_further_than_is_charged)
def targets_that_are_not_charged(_right: Any) -> Any:
    return lambda _outputs: 0.0


@mutant(least_squares, "folded", checks.no_example_moves_the_statistics_further_than_is_charged)
def a_gram_matrix_released_twice(_right: Any) -> Any:
    return lambda gram: gram.reshape(-1) * 2**0.5


@mutant(labelled_rows, "enforced", checks.no_example_moves_the_sums_of_classes_further_than_is_charged)
def rows_of_classes_that_are_not_cut(_right: Any) -> Any:
    return lambda _bound, norms, _settings: torch.ones_like(norms)


@mutant(ClassSums, "body", checks.no_example_moves_the_sums_of_classes_further_than_is_charged)
def counts_that_are_not_charged(_right: Any) -> Any:
    return 1.0


@mutant(labelled_rows, "each_alone", checks.no_example_moves_the_rows_of_others)
def rows_that_are_made_together(_right: Any) -> Any:
    return lambda parts, x, _wide: torch.nn.Sequential(*parts)(x)
