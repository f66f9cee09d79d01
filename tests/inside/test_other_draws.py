"""Draws of a fixed size, with a cap, and balls in bins: who is drawn, how often, and with whom."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from torch import Tensor

from reticent.accounting import BinInTurn, FixedSize, Gaussian, Subsampled, Truncated
from reticent.errors import SettingError
from reticent.inside import BallsInBins, Capped, OfFixedSize, Randomness, RoundSettings
from reticent.inside.draws import Sampler

SIZE, BATCH, TRIALS = 20, 5, 6000


def drawn(sampler: Sampler, population: int = SIZE) -> np.ndarray:
    """Who took part in each of many draws, as a matrix of booleans."""
    randomness, chosen = Randomness.from_seed(0), np.zeros((TRIALS, population), bool)
    memory: dict[str, Tensor] = {}
    for trial in range(TRIALS):
        now = RoundSettings(SIZE, BATCH, 1.0, 1.0, trial)
        chosen[trial, sampler.draw(now, population, randomness.stream(trial), memory)._index] = True
    return chosen


def alike(chosen: np.ndarray, rate: float) -> None:
    error = np.sqrt(rate * (1 - rate) / TRIALS)
    assert abs(chosen.mean(0) - rate).max() < 4.5 * error


def test_a_batch_of_fixed_size_has_it_and_all_sets_are_alike() -> None:
    chosen = drawn(OfFixedSize())
    assert (chosen.sum(1) == BATCH).all()
    alike(chosen, BATCH / SIZE)
    together = (chosen.T.astype(float) @ chosen / TRIALS)[~np.eye(SIZE, dtype=bool)]
    expected = BATCH * (BATCH - 1) / SIZE / (SIZE - 1)
    assert abs(together - expected).max() < 5 * np.sqrt(expected / TRIALS)


def test_fewer_examples_than_places_are_drawn_as_often() -> None:
    chosen = drawn(OfFixedSize(), population=8)
    alike(chosen, BATCH / SIZE)
    assert chosen.sum(1).max() <= BATCH
    assert chosen.sum(1).min() < BATCH


def test_more_examples_than_places_are_drawn_less_often() -> None:
    chosen = drawn(OfFixedSize(), population=40)
    assert (chosen.sum(1) == BATCH).all()
    alike(chosen, BATCH / 40)


def test_a_cap_cuts_the_size_of_a_poisson_draw_and_nothing_else() -> None:
    chosen = drawn(Capped(most=6))
    sizes, expected = chosen.sum(1), stats.binom.pmf(np.arange(7), SIZE, BATCH / SIZE)
    expected[6] += stats.binom.sf(6, SIZE, BATCH / SIZE)
    assert sizes.max() == 6
    assert stats.chisquare(np.bincount(sizes, minlength=7), expected * TRIALS).pvalue > 1e-3
    alike(chosen, float(expected @ np.arange(7)) / SIZE)


def test_a_cap_may_follow_from_the_batch_size_and_is_no_more_than_there_are() -> None:
    now = RoundSettings(1000, 100, 1.0, 1.0)
    assert Capped().most_of(now) == 157
    assert Capped(deviations=0).most_of(now) == 100
    assert Capped(most=5000).amplify(Gaussian(1.0), now) == Subsampled(0.1, Gaussian(1.0))
    with pytest.raises(SettingError, match="there are more"):
        Capped().draw(now, 1001, np.random.default_rng(0), {})
    with pytest.raises(SettingError, match="most is"):
        Capped(most=0)
    with pytest.raises(SettingError, match="deviations is"):
        Capped(deviations=-1.0)


def test_every_epoch_has_everybody_once() -> None:
    chosen = drawn(BallsInBins())
    epochs = chosen[: TRIALS // 4 * 4].reshape(-1, 4, SIZE)
    assert (epochs.sum(1) == 1).all()
    alike(chosen, 1 / 4)
    sizes = chosen.sum(1)
    assert sizes.var() == pytest.approx(SIZE * (1 / 4) * (3 / 4), rel=0.1), "each by a coin of its own"


def test_events_name_the_declared_numbers() -> None:
    now = RoundSettings(SIZE, BATCH, 1.0, 1.0, number=6)
    assert OfFixedSize().amplify(Gaussian(1.0), now) == FixedSize(BATCH, SIZE, Gaussian(1.0))
    assert Capped(most=7).amplify(Gaussian(1.0), now) == Truncated(0.25, 7, SIZE, Gaussian(1.0))
    assert BallsInBins().amplify(Gaussian(1.0), now) == BinInTurn(2, 4, Gaussian(1.0))
