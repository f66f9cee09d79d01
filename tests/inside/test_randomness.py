"""Randomness: the same place, the same stream; another place, another one; no seed, no repetition."""

import numpy as np
import pytest

from reticent.errors import SettingError
from reticent.inside import Randomness


def test_same_place_same_stream_and_other_places_differ() -> None:
    randomness = Randomness.from_seed(3)
    here = randomness.stream(1, "noise", 0).standard_normal(8)
    assert np.array_equal(here, Randomness.from_seed(3).stream(1, "noise", 0).standard_normal(8))
    for place in [(1, "noise", 1), (2, "noise", 0), (1, "draw", 0), (11, "noise", 0)]:
        assert not np.allclose(here, randomness.stream(*place).standard_normal(8))


def test_streams_of_neighbouring_rounds_are_uncorrelated() -> None:
    randomness = Randomness.from_seed(0)
    streams = np.stack([randomness.stream(number, "noise", 0).standard_normal(4000) for number in range(40)])
    off = np.corrcoef(streams)[~np.eye(40, dtype=bool)]
    assert abs(off).max() < 5 / np.sqrt(4000)


def test_fresh_coins_differ_each_time() -> None:
    assert Randomness.fresh().stream(0).random() != Randomness.fresh().stream(0).random()


def test_seal_depends_on_key_and_bytes() -> None:
    one, two = Randomness.from_seed(1), Randomness.from_seed(2)
    assert one.seal(b"abc") == one.seal(b"a", b"bc") != one.seal(b"abd")
    assert one.seal(b"abc") != two.seal(b"abc")


@pytest.mark.parametrize("seed", [-1, 1.5, True, "7"])
def test_bad_seeds_are_refused(seed: object) -> None:
    with pytest.raises(SettingError, match="whole number"):
        Randomness.from_seed(seed)  # type: ignore[arg-type]
