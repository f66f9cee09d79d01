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
from reticent.accounting import PartInTurn
from reticent.inside.banded import Cyclic
from reticent.inside.draws import Draw

MUTANTS: list[Mutant] = []
mutant = partial(any_mutant, among=MUTANTS)


@mutant(banded, "band", checks.an_example_is_told_of_once_in_a_turn)
def columns_longer_than_one(right: Any) -> Any:
    return lambda bands: tuple(one / right(bands)[0] for one in right(bands))


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
