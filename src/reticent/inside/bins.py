"""Balls in bins: each example falls into one of the rounds of an epoch, by a coin of its own (Chua et al. 2025)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from reticent.accounting import BinInTurn, Event, Gaussian, Unbounded
from reticent.inside.draws import Draw, Memory
from reticent.inside.settings import RoundSettings

BIN = "bin of each example"


def bins_of(settings: RoundSettings) -> int:
    """How many rounds an epoch has: from the declared numbers alone.

    >>> bins_of(RoundSettings(1437, 60, 1.0, 1.0))
    24
    """
    return max(1, round(settings.size / settings.batch_size))


@dataclass(frozen=True)
class BallsInBins:
    """An epoch is as many rounds as there are bins; each example is drawn in one of them, by chance.

    Coins are thrown when an epoch begins, for each example by itself: who else is there changes no example's bin.
    """

    def draw(self, settings: RoundSettings, population: int, rng: np.random.Generator, memory: Memory) -> Draw:
        """Those in the bin whose turn it is."""
        bins = bins_of(settings)
        turn = settings.number % bins
        if turn == 0 or BIN not in memory:
            memory[BIN] = torch.from_numpy(rng.integers(bins, size=population))
        return Draw(np.flatnonzero(memory[BIN].numpy() == turn), self, settings)

    def amplify(self, event: Event, settings: RoundSettings) -> Event:
        """One turn of the epoch; all of them together tell of an example once. Proved for normal noise."""
        bins = bins_of(settings)
        if bins == 1 or isinstance(event, Unbounded):
            return event
        if not isinstance(event, Gaussian):
            return Unbounded(f"nothing is proved of {type(event).__name__} in one of {bins} rounds")
        return BinInTurn(settings.number % bins, bins, event)
