"""Mutants of sums mixed over rounds."""

from __future__ import annotations

from functools import partial
from typing import Any

import band_checks as checks
import numpy as np
from broken_mutants import Mutant
from broken_mutants import mutant as any_mutant

import reticent.accounting.pricing as pricing
import reticent.inside.banded as banded
import reticent.inside.mixed as mixed
from reticent.accounting import PartInTurn
from reticent.inside.banded import Bands, Cyclic
from reticent.inside.draws import Draw

MUTANTS: list[Mutant] = []
mutant = partial(any_mutant, among=MUTANTS)


@mutant(banded, "optimised", checks.an_example_is_told_of_once_in_a_turn)
def columns_longer_than_one(right: Any) -> Any:
    return lambda *asked: tuple(one / right(*asked)[0] for one in right(*asked))


@mutant(Bands, "after", checks.an_example_is_told_of_once_in_a_turn)
def sums_that_are_never_forgotten(_right: Any) -> Any:
    def after(_self: Any, before: Any, latest: Any) -> Any:
        return checks.torch.cat([latest[None], before[:-1] + before[-1:]])

    return after


@mutant(mixed, "GRAIN", checks.rounding_over_rounds_is_made_up_for)
def rounding_of_one_round_made_up_for(_right: Any) -> Any:
    return 0.0


@mutant(Cyclic, "draw", checks.an_example_is_told_of_once_in_a_turn)
def everybody_in_every_part(_right: Any) -> Any:
    def draw(self: Any, settings: Any, population: int, rng: Any, memory: Any) -> Draw:
        return Draw(np.flatnonzero(rng.random(population) < banded.reach(settings, self.bands)), self, settings)

    return draw


@mutant(Cyclic, "draw", checks.an_example_is_told_of_once_in_a_turn)
def parts_thrown_anew_in_every_round(right: Any) -> Any:
    def draw(self: Any, settings: Any, population: int, rng: Any, memory: Any) -> Draw:
        memory.pop(banded.PART, None)
        return right(self, settings, population, rng, memory)

    return draw


@mutant(Cyclic, "amplify", checks.turns_are_charged)
def charged_at_the_rate_of_all(right: Any) -> Any:
    def amplify(self: Any, event: Any, settings: Any) -> Any:
        said = right(self, event, settings)
        return PartInTurn(said.part, said.parts, banded.Subsampled(settings.rate, event))

    return amplify


@mutant(Cyclic, "amplify", checks.other_noise_is_not_charged_as_if_it_were_normal)
def any_noise_charged_as_normal(_right: Any) -> Any:
    def amplify(self: Any, event: Any, settings: Any) -> Any:
        return PartInTurn(settings.number % self.bands, self.bands, banded.Subsampled(0.2, event))

    return amplify


@mutant(pricing, "tally", checks.turns_are_charged)
def one_turn_in_so_many_counted(right: Any) -> Any:
    def tally(events: Any) -> Any:
        counted = dict(events)
        part = {event: count for event, count in counted.items() if isinstance(event, PartInTurn) and event.part}
        return right({event: count for event, count in counted.items() if event not in part} or part)

    return tally
