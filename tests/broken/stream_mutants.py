"""Mutants of streams."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import numpy as np
import stream_checks as checks
from broken_mutants import Mutant
from broken_mutants import mutant as any_mutant

import reticent.accounting.pricing as pricing
import reticent.inside.banded as banded
import reticent.inside.buffered as buffered
from reticent.accounting import RoundOfStream, Subsampled
from reticent.accounting.matrices import toeplitz
from reticent.inside.buffered import Buffers, PartsInTurn
from reticent.inside.draws import Draw

MUTANTS: list[Mutant] = []
mutant = partial(any_mutant, among=MUTANTS)


@mutant(toeplitz, "sensitivity", checks.no_pattern_of_rounds_moves_them_further)
def an_example_counted_once_however_often_it_takes_part(right: Any) -> Any:
    return lambda column, parts: right(column, max(parts, len(column)))


@mutant(toeplitz, "sensitivity", checks.no_pattern_of_rounds_moves_them_further)
def rounds_counted_as_if_at_right_angles(right: Any) -> Any:
    return lambda column, parts: right(column, len(column)) * np.sqrt(-(-len(column) // parts))


@mutant(toeplitz, "sensitivity", checks.no_pattern_of_rounds_moves_them_further)
def columns_that_rise_taken_too(_right: Any) -> Any:
    def sensitivity(column: Any, parts: int) -> float:
        late = [np.concatenate([np.zeros(at), column[: len(column) - at]]) for at in range(0, len(column), parts)]
        return float(np.linalg.norm(np.sum(late, 0)))

    return sensitivity


@mutant(buffered, "_sensitivity", checks.an_example_moves_all_answers_by_what_is_declared)
def declared_for_one_round_of_each(_right: Any) -> Any:
    return lambda matrix, rounds, _parts: toeplitz.sensitivity(matrix.column(rounds), rounds)


@mutant(Buffers, "after", checks.an_example_moves_all_answers_by_what_is_declared)
def buffers_that_never_decay(_right: Any) -> Any:
    return lambda _self, before, latest: before + latest.to(before.dtype)


@mutant(PartsInTurn, "draw", checks.an_example_moves_all_answers_by_what_is_declared)
def everybody_in_every_round(_right: Any) -> Any:
    def draw(self: Any, settings: Any, population: int, rng: Any, memory: Any) -> Draw:
        return Draw(np.arange(population), self, settings)

    return draw


@mutant(PartsInTurn, "draw", checks.an_example_moves_all_answers_by_what_is_declared)
def parts_of_a_stream_thrown_anew(right: Any) -> Any:
    def draw(self: Any, settings: Any, population: int, rng: Any, memory: Any) -> Draw:
        memory.pop(banded.PART, None)
        return right(self, settings, population, rng, memory)

    return draw


@mutant(PartsInTurn, "amplify", checks.a_stream_is_charged_once_and_whole)
def chance_counted_where_there_is_none(right: Any) -> Any:
    def amplify(self: Any, event: Any, settings: Any) -> Any:
        said = right(self, event, settings)
        return RoundOfStream(said.number, said.rounds, Subsampled(settings.rate, said.inner))

    return amplify


@mutant(PartsInTurn, "amplify", checks.nothing_is_charged_that_is_not_proved)
def rounds_charged_that_were_not_planned(_right: Any) -> Any:
    return lambda self, event, settings: RoundOfStream(settings.number % self.mixing.rounds, self.mixing.rounds, event)


@mutant(pricing, "tally", checks.a_stream_is_charged_once_and_whole)
def only_beginnings_counted(right: Any) -> Any:
    def tally(events: Any) -> Any:
        return right({event: count for event, count in Counter(events).items() if not getattr(event, "number", 0)})

    return tally
