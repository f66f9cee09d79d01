"""The lattice: whole grains whatever the value, no pair further apart than the noise is made for, normal noise."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor

from reticent.errors import SettingError
from reticent.inside import Everyone, GaussianNoise, Randomness, RoundSettings, Sealed
from reticent.inside.lattice import AT_MOST, BLOCK, FINEST, REACH, ROUNDING, Lattice
from reticent.inside.randomness import Streams


def place(number: int = 0) -> Streams:
    return Randomness.from_seed(0).at(number, "noise", 0)


def on_the_lattice(lattice: Lattice, value: Tensor) -> Tensor:
    """The value's own point, without noise."""
    return Lattice(lattice.grain, 0.0, 0).noised(value, place())


def released(value: Tensor, sensitivity: float = 1.0, noise: float = 1.0) -> Tensor:
    draw = Everyone().draw(RoundSettings(10, 10, 1.0, 1.0), 10, np.random.default_rng(0), {})
    return GaussianNoise(noise)._open(Sealed(value, sensitivity, draw), place())


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20),
    st.floats(1e-6, 1e6),
    st.floats(1e-3, 1e6),
    st.sampled_from([torch.float32, torch.float64]),
)
def test_answers_are_whole_grains(values: list[float], sensitivity: float, noise: float, kind: torch.dtype) -> None:
    value = torch.tensor(values, dtype=kind) * sensitivity
    grain = Lattice.of(sensitivity=sensitivity, std=noise * sensitivity, size=len(values)).grain
    answer = released(value, sensitivity, noise)
    assert answer.dtype == kind
    points = answer.double() / grain
    assert torch.equal(points, points.round())
    assert points.abs().max() < 2**53


def test_sums_that_round_alike_give_the_same_answer() -> None:
    """Nothing is left of the digits below a grain, and the noise does not depend on the value."""
    lattice = Lattice.of(sensitivity=1.0, std=1.0, size=5000)
    points = torch.randint(-(2**40), 2**40, (5000,), generator=torch.Generator().manual_seed(1)).double()
    low, high = ((points + shift) * lattice.grain for shift in (-0.49, 0.49))
    assert torch.equal(released(low), released(high))
    assert torch.equal(released(low) - released(torch.zeros(5000).double()), points * lattice.grain)


@pytest.mark.parametrize("size", [1, 2, 17, 1000, 60_000])
@pytest.mark.parametrize("sensitivity", [1.0, 0.3, 1e-3, 7.0])
def test_no_pair_is_moved_apart_by_more_than_the_noise_is_made_for(size: int, sensitivity: float) -> None:
    """Near ties in every coordinate, norms of exactly the bound: rounding opens the gap, never beyond its share."""
    lattice = Lattice.of(sensitivity=sensitivity, std=sensitivity, size=size)
    rng, worst = np.random.default_rng(size), 0.0
    for trial in range(60):
        kind = trial % 3
        apart = rng.normal(size=size) if kind else np.ones(size)
        apart *= sensitivity / np.linalg.norm(apart)
        here = (
            rng.integers(-(2**30), 2**30, size) + 0.5 - np.sign(apart) * (1e-6 if kind < 2 else 0.0)
        ) * lattice.grain
        there = here + apart
        if kind == 1:  # ties on the other side too
            there = (np.ceil(there / lattice.grain) + 0.5 * np.sign(apart)) * lattice.grain
            there = here + (there - here) * (sensitivity / np.linalg.norm(there - here))
        pair = [on_the_lattice(lattice, torch.from_numpy(v)) for v in (here, there)]
        worst = max(worst, float((pair[0] - pair[1]).norm()))
        true = float(np.linalg.norm(there - here))
        assert float((pair[0] - pair[1]).norm()) <= true + lattice.grain * math.sqrt(size) * (1 + 1e-9)
    assert worst <= sensitivity * (1 + ROUNDING) * (1 + 1e-9)
    assert size == 1 or worst > sensitivity, "the search is too weak: rounding never moved a pair apart"
    assert worst / (lattice.spread * lattice.grain) <= 1 + 1e-9


@pytest.mark.parametrize("size", [1, 60_000])
@pytest.mark.parametrize("noise", [1e-3, 1.0, 100.0, 2e4])
def test_grains_are_fine_beside_the_bound_and_coarse_beside_the_normals(size: int, noise: float) -> None:
    lattice = Lattice.of(sensitivity=1.0, std=noise, size=size)
    assert math.frexp(lattice.grain)[0] == 0.5, "a power of two"
    assert lattice.spread * lattice.grain >= noise * (1 + lattice.grain * math.sqrt(size)) * (1 - 1e-15)
    assert lattice.spread <= 2.001 * FINEST
    assert lattice.bits <= 32
    assert 2.0**lattice.bits <= max(1, lattice.spread / 8)
    assert 2.0**lattice.bits >= lattice.spread / 16.01, "the uniform part hides less than docs/accounting.md says"
    assert lattice.grain * math.sqrt(size) <= (ROUNDING if noise <= 100 else 2.0**-12)


def test_noise_beyond_all_use_is_refused() -> None:
    with pytest.raises(SettingError, match="leaves nothing"):
        Lattice.of(sensitivity=1.0, std=1e12, size=10)


def test_noise_too_small_for_float64_is_refused() -> None:
    """Grains whose reciprocal is no number would leave zeros apart from all other answers."""
    with pytest.raises(SettingError, match="scale the answer up"):
        Lattice.of(sensitivity=1e-305, std=1e-305, size=10)


def test_a_value_beyond_all_sums_is_cut_and_stays_whole() -> None:
    lattice = Lattice.of(sensitivity=1.0, std=1.0, size=3)
    value = torch.tensor([1e300, -1e300, math.inf], dtype=torch.float64)
    assert (on_the_lattice(lattice, value) / lattice.grain).tolist() == [REACH, -REACH, REACH]
    points = released(value) / lattice.grain
    assert points.abs().max() < 2**53
    assert torch.equal(points, points.round())
    assert lattice.grain * REACH > 1e8, "no sum is cut"


def test_blocks_can_be_made_alone_and_in_any_order() -> None:
    lattice = Lattice.of(sensitivity=1.0, std=1.0, size=2 * BLOCK + 77)
    value = torch.randn(2 * BLOCK + 77, generator=torch.Generator().manual_seed(0))
    whole = lattice.noised(value, place())
    for block in (2, 0, 1):
        part = slice(block * BLOCK, (block + 1) * BLOCK)
        alone = lattice.noised(value[part], place().after(block))
        assert torch.equal(alone, whole[part])


def test_shape_and_memory_of_the_value_are_left_alone() -> None:
    value = torch.randn(3, 4)[:, ::2]
    before = value.clone()
    assert released(value).shape == (3, 2)
    assert torch.equal(value, before)
    assert released(torch.tensor(2.0)).shape == ()


# -- the law of the noise ------------------------------------------------------------------------------------------

MANY = 2_000_000


def noise(sensitivity: float = 1.0, multiplier: float = 1.0, size: int = MANY) -> np.ndarray:
    return released(torch.zeros(size, dtype=torch.float64), sensitivity, multiplier).numpy()


def test_noise_scales_with_sensitivity_and_multiplier() -> None:
    one = noise(size=1000)
    assert np.array_equal(noise(4.0, size=1000), 4 * one)
    assert np.allclose(noise(0.3, size=1000), 0.3 * one, rtol=0.05, atol=0.02)
    assert np.allclose(noise(1.0, 3.0, size=1000), 3 * one, rtol=0.05, atol=0.3)


def test_moments() -> None:
    found = noise()
    root = math.sqrt(MANY)
    assert abs(found.mean()) < 5 / root
    assert 1 - 5 / root <= found.std() <= AT_MOST + 5 / root
    assert abs(stats.skew(found)) < 5 * math.sqrt(6) / root
    assert abs(stats.kurtosis(found)) < 5 * math.sqrt(24) / root


def test_distribution() -> None:
    assert stats.kstest(noise()[:500_000], "norm").pvalue > 1e-3


@pytest.mark.parametrize("beyond", [3.0, 4.0, 5.0])
def test_tails(beyond: float) -> None:
    """No lighter than a normal, and hardly heavier."""
    seen = int((np.abs(noise()) > beyond).sum())
    low, high = (2 * MANY * stats.norm.sf(beyond / scale) for scale in (1.0, AT_MOST))
    assert stats.poisson.ppf(1e-4, low) <= seen <= stats.poisson.ppf(1 - 1e-4, high)


@pytest.mark.parametrize("modulus", [2, 3, 256])
def test_last_digits_are_uniform(modulus: int) -> None:
    """Of the normals' own digits, which are not uniform at this scale, nothing is left."""
    lattice = Lattice.of(sensitivity=1.0, std=1.0, size=MANY)
    last = np.mod(noise() / lattice.grain, modulus).astype(int)
    assert stats.chisquare(np.bincount(last, minlength=modulus)).pvalue > 1e-4


def test_a_uniform_part_hides_the_grid_of_the_normals() -> None:
    """The argument of docs/accounting.md in the small: normals on a grid of 2^-9, a lattice that is 16 times finer."""
    spread, step, width = 2**13, 16, 2**9
    ends = np.arange(-6 * spread, 6 * spread + 1)
    normal = np.diff(stats.norm.cdf((ends - 0.5) / spread))
    toward_zero = np.sign(ends) * (np.abs(ends) // step) * step
    on_grid = np.bincount(toward_zero[:-1] + 6 * spread, weights=normal, minlength=len(normal))
    window = np.ones(width) / width
    inner = slice(3 * spread, 9 * spread)
    with np.errstate(divide="ignore"):
        assert np.abs(np.log(on_grid[inner] / normal[inner])).max() == math.inf
    smooth = [np.convolve(law, window, mode="same")[inner] for law in (on_grid, normal)]
    assert np.abs(np.log(smooth[0] / smooth[1])).max() <= 2 * step / width


def kept(law: Callable[[float], float], threshold: float) -> float:
    """The chance that noise with a uniform part of width 1/8 stays below a threshold."""
    at = np.linspace(-1 / 16, 1 / 16, 2001)
    return float(np.mean([law(threshold + shift) for shift in at]))


@pytest.mark.parametrize("threshold", [-6.0, -2.0, -0.5, 0.0, 0.5, 2.0, 6.0])
def test_a_test_of_the_noise_passes_as_often_as_the_gates_say(threshold: float) -> None:
    """DPSUR charges for the chance to pass: it lies between those of the noise declared and of AT_MOST times it."""
    exact = kept(stats.norm(scale=1 + ROUNDING).cdf, threshold)
    ends = sorted((stats.norm.cdf(threshold), stats.norm.cdf(threshold / AT_MOST)))
    assert ends[0] * (1 - 1e-9) <= exact <= ends[1] * (1 + 1e-9)
