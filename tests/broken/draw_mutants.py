"""Mutants of draws whose size is limited, and of balls in bins."""

from __future__ import annotations

from functools import partial
from typing import Any

import draw_checks as checks
import numpy as np
from broken_mutants import Mutant
from broken_mutants import mutant as any_mutant

import reticent.accounting.pricing as pricing
from reticent.accounting import BinInTurn, Subsampled
from reticent.inside import BallsInBins, Capped, OfFixedSize
from reticent.inside.bins import BIN
from reticent.inside.draws import Draw
from reticent.inside.sized import batch_of

MUTANTS: list[Mutant] = []
mutant = partial(any_mutant, among=MUTANTS)


@mutant(Capped, "amplify", checks.a_cap_is_charged)
def a_cap_that_is_not_charged(_right: Any) -> Any:
    return lambda _self, event, settings: Subsampled(settings.rate, event)


@mutant(OfFixedSize, "amplify", checks.a_draw_tells_no_more_than_is_charged)
def a_fixed_size_charged_as_coins(_right: Any) -> Any:
    return lambda _self, event, settings: Subsampled(settings.rate, event)


@mutant(OfFixedSize, "draw", checks.one_more_tells_no_more_than_is_charged)
def a_batch_of_those_who_are_there(_right: Any) -> Any:
    def draw(self: Any, settings: Any, population: int, rng: Any, _memory: Any) -> Draw:
        count = min(batch_of(settings), population)
        return Draw(np.sort(rng.choice(population, count, replace=False)), self, settings)

    return draw


@mutant(pricing, "counts_examples", checks.a_cap_has_no_price_where_the_number_of_examples_is_private)
def a_cap_priced_for_one_more(_right: Any) -> Any:
    return lambda _event: False


@mutant(BallsInBins, "draw", checks.each_falls_into_one_bin_of_every_epoch_anew)
def the_same_bins_in_every_epoch(right: Any) -> Any:
    def draw(self: Any, settings: Any, population: int, rng: Any, memory: Any) -> Draw:
        before = memory.get(BIN)
        drawn = right(self, settings, population, rng, memory)
        if before is None:
            return drawn
        memory[BIN] = before
        return Draw(np.flatnonzero(before.numpy() == settings.number % 4), self, settings)

    return draw


@mutant(BallsInBins, "draw", checks.each_falls_into_one_bin_of_every_epoch_anew)
def bins_thrown_anew_in_every_round(right: Any) -> Any:
    def draw(self: Any, settings: Any, population: int, rng: Any, memory: Any) -> Draw:
        memory.pop(BIN, None)
        return right(self, settings, population, rng, memory)

    return draw


@mutant(BallsInBins, "amplify", checks.an_epoch_is_charged_for_every_beginning)
def one_round_of_an_epoch_charged(_right: Any) -> Any:
    return lambda _self, event, settings: Subsampled(settings.rate / 4, event)


@mutant(BallsInBins, "amplify", checks.an_epoch_is_charged_for_every_beginning)
def any_noise_charged_in_bins(_right: Any) -> Any:
    return lambda _self, event, settings: BinInTurn(settings.number % 4, 4, checks.Gaussian(1.0) if event else event)
