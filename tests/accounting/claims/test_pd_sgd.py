"""PD-SGD: the chance to pass, its bounds, and the distance at which it falls."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.accounting.claims.pd_sgd import (
    largest_distance,
    pass_chance,
    reach,
    simple_bound,
    upper_bound,
    width_for,
)
from reticent.errors import SettingError


@pytest.mark.each("deniability", "chance")
def test_golden_chances(row: dict) -> None:
    d, sigma, gamma = row["at"]
    assert pass_chance(d, sigma, gamma) == pytest.approx(row["pass"], rel=1e-8)
    if "lemma2" in row:
        assert upper_bound(d, sigma, gamma) == pytest.approx(row["lemma2"], rel=1e-8)
    if "corollary1" in row:
        assert simple_bound(d, sigma, gamma, 2 * sigma**2 * gamma / d) == pytest.approx(row["corollary1"], rel=1e-8)


def test_golden_reach(golden) -> None:
    table = golden("deniability")["reach"]
    for gamma, wide, narrow in zip(table["gamma"], table["at_5_percent"], table["at_1e_5"], strict=True):
        assert reach(0.05, gamma) == pytest.approx(wide, abs=1e-8)
        assert reach(1e-5, gamma) == pytest.approx(narrow, abs=1e-8)
    assert largest_distance(0.05, 0.1, 4) == pytest.approx(0.24097977, abs=1e-8)
    assert largest_distance(1e-5, 0.1, 4) == pytest.approx(0.87910366, abs=1e-8)
    assert math.sqrt(largest_distance(0.05, 0.1, 4) / 7680) == pytest.approx(0.005601569, abs=1e-9)


def test_the_chance_is_that_of_the_test() -> None:
    rng, count = np.random.default_rng(5), 200_000
    for d, sigma, gamma in [(4.0, 1.0, 1.0), (0.04, 0.1, 4.0), (16.0, 1.0, 1.0)]:
        dot = math.sqrt(d) * sigma * rng.standard_normal(count)  # <Z, D>
        share = np.mean(np.abs(d + 2 * dot) <= 2 * sigma**2 * gamma)
        exact = pass_chance(d, sigma, gamma)
        assert abs(share - exact) < 4 * math.sqrt(exact * (1 - exact) / count)


@given(u=st.floats(0.01, 40), factor=st.floats(1.01, 3), gamma=st.floats(0.01, 100))
def test_farther_batches_pass_less(u: float, factor: float, gamma: float) -> None:
    near, far = pass_chance(u**2, 1.0, gamma), pass_chance((u * factor) ** 2, 1.0, gamma)
    assert far <= near * (1 + 1e-12)
    if u**2 > 2 * gamma * 1.001:
        assert near <= upper_bound(u**2, 1.0, gamma) * (1 + 1e-9) + 1e-300
    if u >= 2 and u**2 > 2 * gamma * 1.01:
        assert near <= simple_bound(u**2, 1.0, gamma, 2 * gamma / u**2) * (1 + 1e-9) + 1e-300


@given(chance=st.floats(1e-9, 0.9), gamma=st.floats(0.01, 5000))
def test_reach_is_the_inverse(chance: float, gamma: float) -> None:
    assert pass_chance(reach(chance, gamma) ** 2, 1.0, gamma) == pytest.approx(chance, rel=1e-6)


def test_the_width_for_a_distance() -> None:
    assert pass_chance(0.5, 0.1, width_for(0.5, 0.05, 0.1)) == pytest.approx(0.05, rel=1e-9)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(SettingError, match="both above 0"):
        pass_chance(1.0, 0.0, 1.0)
    with pytest.raises(SettingError, match="corollary 1"):
        simple_bound(3.0, 1.0, 1.0, 0.9)
