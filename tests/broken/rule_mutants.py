"""Mutants of what a pass sees for itself, past the proof of its rules."""

from __future__ import annotations

from functools import partial
from typing import Any

import rule_checks as checks
from broken_mutants import Mutant
from broken_mutants import mutant as any_mutant
from torch import Tensor

from reticent.gradients import uses
from reticent.gradients.following import Whose, indexing, routing, tables
from reticent.gradients.rules import broadcast
from reticent.gradients.tape import Tape

MUTANTS: list[Mutant] = []
mutant = partial(any_mutant, among=MUTANTS)


@mutant(Whose, "after", checks.places_of_an_earlier_pass_are_not_used)
def places_are_remembered_by_function_and_shape(right: Any) -> Any:
    known: dict[Any, Any] = {}

    def after(self: Any, function: Any, args: Any, kwargs: Any, result: Any = None) -> Any:
        key = function, *(tuple(one.shape) if isinstance(one, Tensor) else str(one) for one in args)
        if key not in known:
            known[key] = right(self, function, args, kwargs, result)
        return known[key]

    return after


@mutant(uses, "_nothing", checks.a_layer_without_a_proof_is_not_trusted)
def gradients_without_a_proof_left_out(_right: Any) -> Any:
    return lambda _gradient: True


@mutant(tables, "_in_order", checks.who_picks_the_token_of_another_is_seen)
def tables_in_any_order(_right: Any) -> Any:
    return lambda _table, _n: True


@mutant(broadcast, "_alike", checks.rows_by_the_place_in_the_batch_are_seen)
def rows_of_the_first_for_all(_right: Any) -> Any:
    return lambda _rows: True


@mutant(tables, "alike", checks.tokens_by_the_place_in_the_batch_are_seen)
def tokens_by_number(_right: Any) -> Any:
    return lambda _table, _axis: True


@mutant(indexing, "alike", checks.weights_by_rank_are_seen)
def ranks_are_nobodys(_right: Any) -> Any:
    return lambda _table, _axis: True


@mutant(Tape, "refuse", checks.a_refusal_that_the_model_catches_ends_the_pass)
def refusals_are_forgotten(_right: Any) -> Any:
    return lambda _self, why: why


@mutant(routing, "_of_the_same_rows", checks.tokens_of_others_at_an_expert_are_seen)
def any_token_is_routed(_right: Any) -> Any:
    return lambda _place, _order: True


@mutant(routing, "_same_for_all_rows", checks.rows_by_their_rank_at_an_expert_are_seen)
def ranks_at_an_expert_are_nobodys(_right: Any) -> Any:
    return lambda _tensor, _axes: True
