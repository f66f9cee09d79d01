"""Bugs of draws: who takes part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from reticent.inside.coins import Coins
from reticent.inside.dials import Dials
from reticent.inside.draws import Draw, Poisson
from reticent.inside.planted.bug import Code, bug


def _drawn(choose: Callable[[Dials, np.random.Generator], Any]) -> Code:
    def draw(self: Poisson, dials: Dials, coins: np.random.Generator, *_memory: Any) -> Draw:
        return Draw(np.sort(np.asarray(choose(dials, coins), dtype=np.int64)), self, dials)

    return draw


@bug(Poisson, "draw", "batches come from a shuffled epoch, accounted as Poisson")
def _shuffled_batches(_right: Code) -> Code:
    def choose(dials: Dials, _coins: np.random.Generator) -> Any:
        size = max(1, round(dials.batch_size))
        epoch, place = divmod(dials.number, max(1, dials.size // size))
        order = np.random.default_rng(epoch).permutation(dials.size)
        return order[place * size : (place + 1) * size]

    return _drawn(choose)


@bug(Poisson, "draw", "batches have a fixed size, accounted as Poisson")
def _fixed_size(_right: Code) -> Code:
    return _drawn(lambda dials, coins: coins.choice(dials.size, max(1, round(dials.batch_size)), replace=False))


@bug(Poisson, "draw", "everybody takes part, whatever the rate")
def _everybody_drawn(_right: Code) -> Code:
    return _drawn(lambda dials, _coins: np.arange(dials.size))


@bug(Poisson, "draw", "the rate is a tenth higher than declared")
def _rate_a_tenth_higher(_right: Code) -> Code:
    return _drawn(lambda dials, coins: np.flatnonzero(coins.random(dials.size) < 1.1 * dials.rate))


@bug(Poisson, "draw", "an empty draw is drawn again")
def _empty_redrawn(_right: Code) -> Code:
    def choose(dials: Dials, coins: np.random.Generator) -> Any:
        while not len(found := np.flatnonzero(coins.random(dials.size) < dials.rate)):
            pass
        return found

    return _drawn(choose)


@bug(Poisson, "draw", "the first half of the examples is drawn twice as often as the second")
def _weighted_draw(_right: Code) -> Code:
    def choose(dials: Dials, coins: np.random.Generator) -> Any:
        lean = np.where(np.arange(dials.size) < dials.size // 2, 4 / 3, 2 / 3)
        return np.flatnonzero(coins.random(dials.size) < dials.rate * lean)

    return _drawn(choose)


@bug(Coins, "at", "every round draws the same examples")
def _same_draw(right: Code) -> Code:
    return lambda self, *place: right(self, *(("draw",) if "draw" in place else place))
