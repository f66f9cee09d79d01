"""Mutants of clip norms by layer."""

from __future__ import annotations

from functools import partial
from typing import Any

import layer_checks as checks
import torch
from broken_mutants import Mutant
from broken_mutants import mutant as any_mutant

import reticent.inside.queries as queries
from reticent.gradients.bookkeeping import Books
from reticent.inside.by_layer import Division

MUTANTS: list[Mutant] = []
mutant = partial(any_mutant, among=MUTANTS)


@mutant(Division, "weights", checks.layers_together_are_charged)
def each_layer_clipped_to_the_whole(_right: Any) -> Any:
    return lambda _self, norms, sensitivity: torch.clamp(sensitivity / norms.clamp(min=1e-12), max=1.0)


@mutant(Division, "weights", checks.layers_together_are_charged)
def shares_that_add_up_without_squares(right: Any) -> Any:
    return lambda self, norms, sensitivity: right(self, norms, sensitivity * sum(self.shares))


@mutant(queries, "division_of", checks.weights_of_a_careless_bound_are_cut)
def weights_taken_as_a_bound_gives_them(_right: Any) -> Any:
    return lambda bound, flat: bound.divide(flat.shapes())


@mutant(Books, "columns", checks.layers_together_are_charged)
def biases_left_out_of_their_layer(_right: Any) -> Any:
    def columns(self: Any, parts: Any) -> torch.Tensor:
        named = {self.name(key): found for key, found in self._squares.items()}
        total = torch.zeros(len(next(iter(named.values()))), max(parts.values()) + 1)
        for name, found in named.items():
            total[:, parts[name]] += 0 if name.endswith("bias") else found
        return total.sqrt()

    return columns
