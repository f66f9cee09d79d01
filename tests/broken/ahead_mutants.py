"""Mutants of fetching ahead: other rows, the wrong round, an error that tells, a forked worker."""

from __future__ import annotations

import multiprocessing
from functools import partial
from typing import Any

import ahead_checks as checks
import numpy as np
from broken_mutants import Mutant
from broken_mutants import mutant as any_mutant

from reticent.inside import ahead
from reticent.inside.ahead import Fetched
from reticent.inside.vault import Vault

MUTANTS: list[Mutant] = []
mutant = partial(any_mutant, among=MUTANTS)


@mutant(Fetched, "take", checks.the_same_is_released_and_charged)
def whatever_was_fetched_last_is_taken(right: Any) -> Any:
    def take(self: Fetched, index: np.ndarray) -> Any:
        return right(self, np.frombuffer(list(self._coming)[-1], np.int64) if self._coming else index)

    return take


@mutant(Vault, "_draw_of", checks.the_same_is_released_and_charged)
def the_next_draw_is_taken_now(right: Any) -> Any:
    def draw_of(self: Vault, number: int, sampler: Any, settings: Any) -> Any:
        return right(self, number + ahead.foresees(self._examples), sampler, settings)

    return draw_of


@mutant(Fetched, "_fetched", checks.what_fails_ahead_is_fetched_again)
def a_worker_that_fails_is_told(_right: Any) -> Any:
    return lambda self, piece: piece.future.result()


@mutant(ahead.multiprocessing, "get_context", checks.nobody_who_fetches_is_forked)
def workers_are_forked(_right: Any) -> Any:
    class Forked(type(multiprocessing.get_context("fork"))):  # type: ignore[misc]
        def set_forkserver_preload(self, names: list[str]) -> None:
            """Nothing is loaded before."""

    return lambda _method: Forked()
