"""Mutants of privacy by person: rows bounded, drawn or counted where it should be whole persons."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import numpy as np
import people_checks as checks
import torch
from broken_mutants import Mutant
from broken_mutants import mutant as any_mutant

import reticent.data.features.statistics as statistics
import reticent.inside.queries as queries
import reticent.inside.vault as vault
import reticent.run as train
from reticent import origins
from reticent.gradients.grouped import flattened
from reticent.inside import Persons, as_store
from reticent.methods.planning import Plan

MUTANTS: list[Mutant] = []
mutant = partial(any_mutant, among=MUTANTS)


@mutant(queries, "norms_and_sum", checks.a_person_is_bounded_as_one)
def every_row_has_a_bound_of_its_own(right: Any) -> Any:
    def norms_and_sum(model: Any, loss: Any, batch: Any, weigh: Any, **options: Any) -> Any:
        return right(model, loss.loss, flattened(batch), weigh, **options)

    return norms_and_sum


@mutant(queries, "norms_and_sum", checks.a_person_is_bounded_as_one)
def a_person_counts_once_for_each_row(right: Any) -> Any:
    def norms_and_sum(model: Any, loss: Any, batch: Any, weigh: Any, **options: Any) -> Any:
        rows = (batch.weights > 0).sum(1)
        return right(model, loss, batch, lambda norms: weigh(norms) * rows[: len(norms)], **options)

    return norms_and_sum


@mutant(statistics, "features_of", checks.a_mean_is_bounded_as_one)
def a_mean_of_rows(_right: Any) -> Any:
    return lambda function, batch: function(flattened(batch)[0]).double()


@mutant(train, "by_person", checks.persons_are_drawn_whole)
def rows_are_drawn(_right: Any) -> Any:
    return lambda examples, groups, most_rows: as_store(examples)


@mutant(Persons, "take", checks.persons_are_drawn_whole)
def rows_of_a_person_have_coins_of_their_own(right: Any) -> Any:
    def take(self: Persons, index: np.ndarray) -> Any:
        batch = right(self, index)
        coins = torch.from_numpy(np.random.default_rng(self.turn).random(tuple(batch.weights.shape)) < 0.5)
        return batch._replace(weights=batch.weights * coins)

    return take


@mutant(Plan, "guarantee", checks.the_unit_is_said)
def persons_are_called_examples(right: Any) -> Any:
    return lambda self, **said: right(dataclasses.replace(self, unit="example"), **said)


@mutant(Persons, "everything", checks.other_persons_are_other_examples)
def whose_a_row_is_does_not_matter(_right: Any) -> Any:
    return lambda self: self.rows


@mutant(vault, "slack", checks.noise_makes_up_for_rows)
def noise_for_one_row_a_person(right: Any) -> Any:
    return lambda batch_size, summed_in, **_by_person: right(batch_size, summed_in)


@mutant(origins, "refuse_mixed", checks.rows_and_persons_do_not_add_up)
def one_price_for_rows_and_persons(_right: Any) -> Any:
    return lambda unit, other: None
