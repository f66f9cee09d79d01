"""Mutants of what runs owe each other: costs that are left out, forgotten or given back too soon."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import budget_checks as checks
import torch
from broken_mutants import Mutant
from broken_mutants import mutant as any_mutant
from torch import Tensor

import reticent.bill as bill
import reticent.budgets.settling as settling
import reticent.tuning.judges as judges
from reticent.accounting.lineage import Lineage
from reticent.budgets import DatasetBudget
from reticent.budgets.reserving import Reservation
from reticent.inside import Drawn, RightAnswers

MUTANTS: list[Mutant] = []
mutant = partial(any_mutant, among=MUTANTS)


@mutant(bill, "declared_public", checks.trained_weights_are_not_new)
def trained_weights_count_as_new(_right: Any) -> Any:
    return lambda *_: Lineage()


@mutant(bill, "declared_public", checks.what_is_public_is_said_of_some_examples)
def what_was_declared_public_once_is_so_for_all(right: Any) -> Any:
    return lambda *asked: replace(right(*asked), others={})


@mutant(judges, "Guard", checks.private_judges_are_not_kept)
def private_judges_may_be_kept(_right: Any) -> Any:
    return lambda _model: nullcontext


@mutant(RightAnswers, "answer", checks.a_private_judge_is_one_at_most)
def private_judges_are_answered_together(_right: Any) -> Any:
    def answer(self: RightAnswers, drawn: Drawn) -> Tensor:
        self.model.eval()
        counts = [(self.model(x).argmax(1) == y).double().sum() for x, y in drawn.batches()]
        return torch.stack(counts).sum()

    return answer


@mutant(bill, "begin", checks.both_runs_are_priced)
def the_first_run_is_left_out(right: Any) -> Any:
    return lambda initial, **asked: replace(right(initial, **asked), already=asked["already"])


@mutant(DatasetBudget, "_refuse_beyond", checks.a_cap_is_kept)
def nobody_asks_the_cap(_right: Any) -> Any:
    return lambda self, spent, spending: None


@mutant(DatasetBudget, "_sum", checks.a_cap_is_kept)
def each_run_has_the_whole_cap(_right: Any) -> Any:
    def total(self: DatasetBudget, charged: Any) -> float:
        costs = [one.spending.divergence(self.order, self.cap.adjacency) for one in charged]
        return max(costs, default=0.0) if isinstance(charged, map) else sum(costs)

    return total


@mutant(Reservation, "make", checks.runs_are_charged)
def runs_are_charged_when_they_are_over(_right: Any) -> Any:
    return lambda self, *plan, **resumed: None


@mutant(settling, "refuse_lost", checks.what_was_released_is_not_given_back)
def an_empty_ledger_proves_that_nothing_was_released(_right: Any) -> Any:
    return lambda ledger, stored: 0


@mutant(Reservation, "make", checks.a_settled_run_is_over)
def settled_runs_go_on(right: Any) -> Any:
    def make(self: Reservation, *plan: Any, resumed: bool) -> None:
        if resumed:
            self.begin = lambda: None  # type: ignore[method-assign]
        else:
            right(self, *plan, resumed=resumed)

    return make
