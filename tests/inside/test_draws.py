"""The Poisson draw: inclusion rate, independence of pairs, the law of its size; and what it does to an event."""

import numpy as np
import pytest
from scipy import stats

from reticent.accounting import Gaussian, Subsampled
from reticent.inside import Everyone, Poisson, Randomness, RoundSettings

SIZE, RATE, TRIALS = 40, 0.15, 20_000


def settings(size: int = SIZE, rate: float = RATE) -> RoundSettings:
    return RoundSettings(size, rate * size, 1.0, 1.0)


@pytest.fixture(scope="module")
def drawn() -> np.ndarray:
    """Who took part in each of many draws, as a matrix of booleans."""
    randomness, chosen = Randomness.from_seed(0), np.zeros((TRIALS, SIZE), bool)
    for trial in range(TRIALS):
        chosen[trial, Poisson().draw(settings(), SIZE, randomness.stream(trial), {})._index] = True
    return chosen


def test_everyone_takes_part_at_the_declared_rate(drawn: np.ndarray) -> None:
    error = np.sqrt(RATE * (1 - RATE) / TRIALS)
    assert abs(drawn.mean(0) - RATE).max() < 4.5 * error


def test_pairs_are_independent(drawn: np.ndarray) -> None:
    together = (drawn.T.astype(float) @ drawn / TRIALS)[~np.eye(SIZE, dtype=bool)]
    error = np.sqrt(RATE**2 * (1 - RATE**2) / TRIALS)
    assert abs(together - RATE**2).max() < 5 * error


def test_size_is_binomial(drawn: np.ndarray) -> None:
    sizes = drawn.sum(1)
    assert sizes.var() == pytest.approx(SIZE * RATE * (1 - RATE), rel=0.05)
    expected = stats.binom.pmf(np.arange(SIZE + 1), SIZE, RATE) * TRIALS
    enough = expected >= 5
    assert (
        stats.chisquare(
            np.bincount(sizes, minlength=SIZE + 1)[enough],
            expected[enough] * sum(np.bincount(sizes, minlength=SIZE + 1)[enough]) / sum(expected[enough]),
        ).pvalue
        > 1e-4
    )


def test_no_example_twice_and_all_within_range() -> None:
    index = Poisson().draw(settings(1000, 0.5), 1000, Randomness.from_seed(1).stream(0), {})._index
    assert len(np.unique(index)) == len(index)
    assert index.min() >= 0
    assert index.max() < 1000


def test_cost_does_not_grow_with_the_size() -> None:
    """A draw of a few among a hundred million must not make an array of a hundred million."""
    import tracemalloc

    tracemalloc.start()
    Poisson().draw(RoundSettings(10**8, 50, 1.0, 1.0), 10**8, Randomness.from_seed(1).stream(0), {})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10**6


def test_amplification_names_the_declared_rate() -> None:
    assert Poisson().amplify(Gaussian(1.0), settings()) == Subsampled(RATE, Gaussian(1.0))
    assert Poisson().amplify(Gaussian(1.0), settings(rate=1.0)) == Gaussian(1.0)
    assert Everyone().amplify(Gaussian(1.0), settings()) == Gaussian(1.0)


def test_everyone_is_everyone() -> None:
    assert np.array_equal(
        Everyone().draw(settings(), SIZE, Randomness.from_seed(0).stream(0), {})._index, np.arange(SIZE)
    )
