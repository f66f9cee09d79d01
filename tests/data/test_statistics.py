"""Private statistics: one example moves a sum by at most the limit, both sums are charged, the noise is there."""

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from reticent import data
from reticent.accounting import Gaussian, Ledger, Planned
from reticent.data.features.statistics import FeatureSum, channel_means
from reticent.errors import BudgetSpent
from reticent.inside import Everyone, Randomness, RoundSettings, Vault, as_store

Z = 3.0


def vault(x):
    examples = as_store((torch.as_tensor(x, dtype=torch.float32), torch.zeros(len(x))))
    return Vault(examples, randomness=Randomness.from_seed(0), ledger=Ledger(), allowance=Planned([Gaussian(Z)] * 2))


def private_sum(x, query):
    inside = vault(x)
    return inside.ask(query, inside.draw(Everyone(), RoundSettings(len(x), len(x), query.limit, Z)))


ANY_NUMBER = st.floats(width=32, allow_nan=True, allow_infinity=True)


@settings(max_examples=60, deadline=None)
@given(
    arrays_of.arrays(
        np.float32, st.tuples(st.integers(2, 6), st.integers(1, 4), st.integers(1, 3)), elements=ANY_NUMBER
    ),
    st.sampled_from([1, 2]),
    st.floats(0.01, 10),
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_no_example_moves_a_sum_by_more_than_the_limit(x, power, limit):
    query = FeatureSum(partial(channel_means, power=power), limit)
    everyone = private_sum(x, query)
    assert everyone.sensitivity == limit
    for gone in range(len(x)):
        moved = everyone._value - private_sum(np.delete(x, gone, axis=0), query)._value
        assert float(moved.norm()) <= limit * (1 + 1e-9)


def test_a_huge_example_counts_exactly_the_limit():
    x = np.zeros((3, 2, 4), np.float32)
    x[1] = 1e9
    assert float(private_sum(x, FeatureSum(partial(channel_means, power=1), 0.5))._value.norm()) == pytest.approx(0.5)


def test_two_releases_are_charged_and_a_third_is_refused():
    inside = vault(np.random.RandomState(0).rand(50, 3, 4))
    settings = {"mean_limit": 1.0, "square_limit": 1.0, "noise_multiplier": Z}
    data.release_moments(inside, **settings)
    assert [entry.event for entry in inside.ledger] == [Gaussian(Z), Gaussian(Z)]
    with pytest.raises(BudgetSpent):
        data.release_moments(inside, **settings)
    assert len(list(inside.ledger)) == 2


def test_the_noise_is_as_large_as_charged():
    x = np.zeros((10, 4000, 1), np.float32)
    moments = data.release_moments(vault(x), mean_limit=0.7, square_limit=0.7, noise_multiplier=Z)
    assert float(moments.mean.std()) * 10 == pytest.approx(Z * 0.7, rel=0.05)


def test_moments_are_near_the_truth_for_many_examples():
    numbers = np.random.RandomState(1)
    x = numbers.normal([0.2, 0.6], [0.1, 0.3], (20_000, 2)).astype(np.float32)[..., None]
    moments = data.release_moments(vault(x), mean_limit=2.0, square_limit=2.0, noise_multiplier=Z)
    assert moments.mean.tolist() == pytest.approx([0.2, 0.6], abs=0.01)
    assert moments.std.tolist() == pytest.approx([0.1, 0.3], abs=0.02)


def test_deviations_are_never_zero_or_imaginary():
    moments = data.release_moments(vault(np.zeros((5, 100, 1))), mean_limit=1.0, square_limit=1.0, noise_multiplier=Z)
    assert float(moments.std.min()) == pytest.approx((Z / 5) ** 0.5)
