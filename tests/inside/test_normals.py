"""Normals by Box and Muller: as exact as docs/accounting.md says, also where words are small."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

from reticent.inside import cores
from reticent.inside.normals import LONG, SPARE, _radii, normals, words_for
from reticent.inside.ranks import BLOCK

WIDE = np.longdouble
needs_wide = pytest.mark.skipif(np.finfo(WIDE).nmant < 63, reason="no type here has more digits than float64")


def drawn(size: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**64, words_for(size), dtype=np.uint64)


def made(words: np.ndarray, size: int, spread: float = 1.0) -> np.ndarray:
    even = size + size % 2
    out = np.empty(even)
    normals(words.copy(), spread, np.empty(even), out)
    return out


@needs_wide
def test_they_are_those_of_exact_functions() -> None:
    """Each within what the argument allows: 6 x 2^-53 of itself, and what rounding the angle adds."""
    words, pairs = drawn(BLOCK), BLOCK // 2
    u = (words[:pairs] & np.uint64(2**63 - 1)).astype(WIDE) * WIDE(2.0**-63)
    first = words[:pairs] & np.uint64(2**63 - 1)
    few = np.flatnonzero(first < LONG)
    u[few] = first[few].astype(WIDE) * WIDE(2.0**-63) + (words[3 * pairs :][: len(few)].astype(WIDE) + 0.5) * (
        WIDE(2.0**-63) * WIDE(2.0**-64)
    )
    radius, angle = np.sqrt(-2 * np.log(u)), words[pairs : 2 * pairs].view(np.int64).astype(WIDE) * WIDE(2.0**-63)
    turn = angle * WIDE("3.14159265358979323846264338327950288")
    exact = np.concatenate([radius * np.cos(turn), radius * np.sin(turn)])
    off = np.abs(made(words, BLOCK).astype(WIDE) - exact)
    both = np.concatenate([radius, radius])
    near_one = 2.0**-53 / np.maximum(both, 1e-12) ** 2  # a U beside 1 has few digits of its distance from it
    allowed = np.abs(exact) * (6 * 2.0**-53 + near_one) + both * 1.5 * math.pi * 2.0**-53
    assert (off <= allowed).all()


@needs_wide
def test_small_words_get_more_digits() -> None:
    """The radius of a word of few digits goes on in another word: it is spread over the whole cell."""
    words = np.array([0, 1, 5, 2**20, LONG - 1, LONG], np.int64)
    spare = np.random.default_rng(0).integers(0, 2**64, SPARE, dtype=np.uint64)
    out = np.empty(len(words))
    _radii(words.copy(), spare, 1.0, out)
    cell = words.astype(WIDE)
    low, high = (np.sqrt(-2 * np.log(np.maximum(end, WIDE(2.0**-64)) * WIDE(2.0**-63))) for end in (cell + 1, cell))
    assert (low * (1 - 1e-15) <= out).all()
    assert (out <= high * (1 + 1e-15)).all()
    grid = np.sqrt(-2 * np.log((cell + 0.5) * WIDE(2.0**-63)))
    assert (np.abs(out - grid)[:3] > 1e-6).all(), "they lie on the coarse grid"
    assert out.max() > 9.3


@pytest.mark.parametrize("size", [1, 2, 3, 1000, BLOCK])
def test_the_law_of_every_length(size: int) -> None:
    found = np.concatenate([made(drawn(size, seed), size)[:size] for seed in range(max(1, 3000 // size))])
    assert stats.kstest(found, "norm").pvalue > 1e-3
    assert np.isfinite(found).all()


def test_lengths_are_independent_of_the_direction() -> None:
    found = made(drawn(BLOCK), BLOCK).reshape(2, -1)
    assert stats.kstest((found**2).sum(0) / 2, "expon").pvalue > 1e-3
    assert stats.kstest(np.arctan2(*found) / (2 * math.pi) + 0.5, "uniform").pvalue > 1e-3


def test_work_that_fails_is_not_left_behind() -> None:
    """Whoever fails, nobody is at work any more when the failure is told, and the threads serve again."""
    threads, done = torch.get_num_threads(), []

    def act(number: int) -> None:
        if number == 3:
            raise ValueError("no")
        done.append(number)

    torch.set_num_threads(3)
    try:
        with pytest.raises(ValueError, match="no"):
            cores.each(9, act)
        before = len(done)
        cores.each(9, lambda number: done.append(number))
        assert sorted(done[before:]) == list(range(9))
    finally:
        torch.set_num_threads(threads)
