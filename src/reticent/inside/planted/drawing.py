"""Bugs of draws: who takes part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from reticent.inside.draws import Draw, Poisson
from reticent.inside.planted.bug import Code, bug
from reticent.inside.randomness import Randomness
from reticent.inside.settings import RoundSettings


def _drawn(choose: Callable[[RoundSettings, int, np.random.Generator], Any]) -> Code:
    def draw(self: Poisson, settings: RoundSettings, population: int, rng: np.random.Generator, *_memory: Any) -> Draw:
        return Draw(np.sort(np.asarray(choose(settings, population, rng), dtype=np.int64)), self, settings)

    return draw


@bug(Poisson, "draw", "batches come from a shuffled epoch, accounted as Poisson")
def _shuffled_batches(_right: Code) -> Code:
    def choose(settings: RoundSettings, population: int, _randomness: np.random.Generator) -> Any:
        size = max(1, round(settings.batch_size))
        epoch, place = divmod(settings.number, max(1, population // size))
        order = np.random.default_rng(epoch).permutation(population)
        return order[place * size : (place + 1) * size]

    return _drawn(choose)


@bug(Poisson, "draw", "batches have a fixed size, accounted as Poisson")
def _fixed_size(_right: Code) -> Code:
    return _drawn(
        lambda settings, population, rng: rng.choice(population, max(1, round(settings.batch_size)), replace=False)
    )


@bug(Poisson, "draw", "everybody takes part, whatever the rate")
def _everybody_drawn(_right: Code) -> Code:
    return _drawn(lambda _settings, population, _randomness: np.arange(population))


@bug(Poisson, "draw", "the rate is a tenth higher than declared")
def _rate_a_tenth_higher(_right: Code) -> Code:
    return _drawn(lambda settings, population, rng: np.flatnonzero(rng.random(population) < 1.1 * settings.rate))


@bug(Poisson, "draw", "an empty draw is drawn again")
def _empty_redrawn(_right: Code) -> Code:
    def choose(settings: RoundSettings, population: int, rng: np.random.Generator) -> Any:
        while not len(found := np.flatnonzero(rng.random(population) < settings.rate)):
            pass
        return found

    return _drawn(choose)


@bug(Poisson, "draw", "the first half of the examples is drawn twice as often as the second")
def _weighted_draw(_right: Code) -> Code:
    def choose(settings: RoundSettings, population: int, rng: np.random.Generator) -> Any:
        lean = np.where(np.arange(population) < population // 2, 4 / 3, 2 / 3)
        return np.flatnonzero(rng.random(population) < settings.rate * lean)

    return _drawn(choose)


@bug(Randomness, "stream", "every round draws the same examples")
def _same_draw(right: Code) -> Code:
    return lambda self, *place: right(self, *(("draw",) if "draw" in place else place))
