"""Centring: the mean is charged, bounded, noisy with coins of its own, and the same after a crash."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from torch import Tensor, nn

from reticent import data, models
from reticent.accounting import Gaussian, Ledger, Planned
from reticent.data.statistics import FeatureSum
from reticent.errors import ModelError, ResumeError, ReticentError, SettingError
from reticent.experiments.centring import centre
from reticent.experiments.parts import model_of
from reticent.experiments.recipe import Recipe
from reticent.experiments.training import prepare, train
from reticent.inside import Coins, Dials, Everyone, Sealed, Vault, store
from reticent.models.centring import split_at_centre

RECIPE = Recipe(data="digits", noise_multiplier=2.0, epochs=1, centre=20.0, seed=0).filled()


def mean_of(model: nn.Module) -> Tensor:
    return split_at_centre(model)[1].mean


def test_the_release_is_part_of_the_guarantee() -> None:
    dataset = data.load("digits")
    plain, centred = (prepare(replace(RECIPE, centre=noise), dataset) for noise in (None, 20.0))
    assert centred.guarantee().epsilon > plain.guarantee().epsilon
    assert centred.plan.already == (Gaussian(20.0),)
    within = prepare(replace(RECIPE, noise_multiplier=None, epsilon=1.0), dataset)
    assert 0.99 < within.guarantee().epsilon <= 1.0


def test_the_centre_is_the_mean_and_noise_of_the_right_size() -> None:
    """A multiplier of 20 on 1,437 digits: 64 coordinates with noise of 20 * 8 / 1437 each."""
    dataset = data.load("digits")
    model = model_of(RECIPE, dataset)
    centre(model, dataset.train, 20.0, seed=0, folder=None)
    off = mean_of(model).flatten() - dataset.train.x.flatten(1).mean(0)
    assert float(off.std()) == pytest.approx(20 * 8 / len(dataset.train), rel=0.4)


@settings(max_examples=60, deadline=None)
@given(
    arrays_of.arrays(
        np.float32,
        st.tuples(st.integers(2, 6), st.integers(1, 4)),
        elements=st.floats(width=32, allow_nan=True, allow_infinity=True),
    ),
    st.floats(0.01, 10),
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_no_example_moves_the_sum_by_more_than_the_limit(x: np.ndarray, limit: float) -> None:
    query = FeatureSum(torch.tanh, limit)
    everyone = private_sum(x, query)
    assert everyone.sensitivity == limit
    for gone in range(len(x)):
        moved = everyone._value - private_sum(np.delete(x, gone, axis=0), query)._value
        assert float(moved.norm()) <= limit * (1 + 1e-9)


def private_sum(x: np.ndarray, query: FeatureSum) -> Sealed:
    examples = store((torch.as_tensor(x), torch.zeros(len(x))))
    vault = Vault(examples, coins=Coins.from_seed(0), ledger=Ledger(), allowance=Planned([Gaussian(1.0)]))
    return vault.ask(query, vault.draw(Everyone(), Dials(len(x), len(x), query.limit, 1.0)))


def test_training_does_not_use_the_noise_of_the_mean_again() -> None:
    """The same seed, the same number of numbers: were the place the same, so would be the noise."""
    coins = Coins.from_seed(0)
    nothing = data.Examples(torch.zeros(10, 4), torch.zeros(10, dtype=torch.int64))
    model = models.with_centre(nn.Sequential(nn.Linear(4, 2)), (4,))
    centre(model, nothing, 1.0, seed=0, folder=None)
    noise = mean_of(model) * 10 / 2
    first = torch.as_tensor(coins.at(0, "noise", 0).standard_normal(4))
    before = torch.as_tensor(coins.at(-1, "noise", 0).standard_normal(4))
    assert not torch.allclose(noise.double(), first, atol=1e-3)
    assert torch.allclose(noise.double(), before, atol=1e-3)


@pytest.mark.parametrize("seed", [0, None])
def test_after_a_crash_nothing_is_released_again(tmp_path: Path, seed: int | None) -> None:
    dataset = data.load("digits")
    first, again = (model_of(RECIPE, dataset) for _ in range(2))
    centre(first, dataset.train, 20.0, seed=seed, folder=tmp_path)
    ledger = (tmp_path / "centre.jsonl").read_text()
    centre(again, dataset.train, 20.0, seed=seed, folder=tmp_path)
    assert torch.equal(mean_of(first), mean_of(again))
    assert (tmp_path / "centre.jsonl").read_text() == ledger
    other = data.Examples(dataset.train.x + 1, dataset.train.y)
    with pytest.raises(ResumeError, match="other examples"):
        centre(again, other, 20.0, seed=seed, folder=tmp_path)


def test_a_crash_between_release_and_writing_gives_the_same_mean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = data.load("digits")
    model = model_of(RECIPE, dataset)
    with monkeypatch.context() as patched:
        patched.setattr("reticent.experiments.centring._Kept.add", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            centre(model, dataset.train, 20.0, seed=None, folder=tmp_path)
    assert len((tmp_path / "centre.jsonl").read_text().splitlines()) == 1, "it was charged"
    centre(model, dataset.train, 20.0, seed=None, folder=tmp_path)
    assert len((tmp_path / "centre.jsonl").read_text().splitlines()) == 1, "and not charged twice"


def test_a_whole_run_with_a_centre_resumes_and_loads(tmp_path: Path) -> None:
    answer = train(RECIPE, tmp_path)
    assert answer["guarantee"]["status"] == "proved"
    assert train(RECIPE, tmp_path, resume=True) == answer


def test_what_the_plan_refuses_is_not_released(tmp_path: Path) -> None:
    """DPIS passes a filter that knows of nothing before it, and epsilon 0.01 does not pay for the mean."""
    dataset = data.load("digits")
    dear = replace(RECIPE, noise_multiplier=None, epsilon=0.01, centre=1.0)
    for recipe in (Recipe(data="digits", method="dpis", epsilon=3.0, centre=20.0, seed=0).filled(), dear):
        with pytest.raises(ReticentError):
            prepare(recipe, dataset, tmp_path / recipe.method)
        assert not list(tmp_path.rglob("centre.*"))


def test_what_cannot_be_centred_says_so() -> None:
    with pytest.raises(ModelError, match="Sequential"):
        models.with_centre(models.ReviewRnn(), (80,))
    with pytest.raises(SettingError, match="takes no centre"):
        train(Recipe(data="digits", method="selena", centre=20.0, epochs=1))
