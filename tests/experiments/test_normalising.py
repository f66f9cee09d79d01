"""Normalising: what is released for it is charged, bounded, noisy with coins of its own, and the same after a crash."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from torch import Tensor, nn

from reticent import checkpoint, data, models
from reticent.accounting import Gaussian, Ledger, Planned
from reticent.accounting.ledger import read_entries
from reticent.certificate import verify
from reticent.data.features.statistics import FeatureSum, channel_means, release_mean
from reticent.errors import BudgetSpent, ModelError, ResumeError, ReticentError, SettingError
from reticent.experiments.normalising import centre, normalise, standardise
from reticent.experiments.parts import model_of
from reticent.experiments.plain import train_plain
from reticent.experiments.recipe import Recipe
from reticent.experiments.training import examples as features_of
from reticent.experiments.training import prepare, train
from reticent.inside import Everyone, Randomness, RoundSettings, Sealed, Vault, as_store
from reticent.inside.normals import normals, words_for
from reticent.models.normalising import Centre, split_at, statistics_of
from reticent.trained import load

RECIPE = Recipe(data="digits", noise_multiplier=2.0, epochs=1, centre=20.0, seed=0).filled()


def mean_of(model: nn.Module) -> Tensor:
    return split_at(Centre, model)[1].mean


def noise_at(randomness: Randomness, place: int) -> Tensor:
    """The first four normal numbers of a release's own place."""
    words, made = np.empty(words_for(4), np.uint64), np.empty(4)
    randomness.fill(words, place, "noise", 0, 0)
    normals(words, 1.0, np.empty(4), made)
    return torch.from_numpy(made)


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
    examples = as_store((torch.as_tensor(x), torch.zeros(len(x))))
    vault = Vault(examples, randomness=Randomness.from_seed(0), ledger=Ledger(), allowance=Planned([Gaussian(1.0)]))
    return vault.ask(query, vault.draw(Everyone(), RoundSettings(len(x), len(x), query.limit, 1.0)))


def test_training_does_not_use_the_noise_of_the_mean_again() -> None:
    """The same seed, the same number of numbers: were the place the same, so would be the noise."""
    randomness = Randomness.from_seed(0)
    nothing = data.Examples(torch.zeros(10, 4), torch.zeros(10, dtype=torch.int64))
    model = models.with_centre(nn.Sequential(nn.Linear(4, 2)), (4,))
    centre(model, nothing, 1.0, seed=0, folder=None)
    noise = mean_of(model) * 10 / 2
    first, before = noise_at(randomness, 0), noise_at(randomness, -1)
    assert not torch.allclose(noise.double(), first, atol=0.07)
    assert torch.allclose(noise.double(), before, atol=0.07), "all but the uniform part of the noise"


@pytest.mark.parametrize("seed", [0, None])
def test_after_a_crash_nothing_is_released_again(tmp_path: Path, seed: int | None) -> None:
    dataset = data.load("digits")
    first, again = (model_of(RECIPE, dataset) for _ in range(2))
    centre(first, dataset.train, 20.0, seed=seed, folder=tmp_path)
    ledger = (tmp_path / "centre.jsonl").read_text()
    centre(again, dataset.train, 20.0, seed=seed, folder=tmp_path)
    assert torch.equal(mean_of(first), mean_of(again))
    assert (tmp_path / "centre.jsonl").read_text() == ledger
    assert "randomness" not in checkpoint.read(tmp_path / "centre.safetensors"), (
        "they would tell what is under the noise"
    )


def test_a_mean_is_not_taken_without_the_ledger_that_paid_for_it(tmp_path: Path) -> None:
    dataset = data.load("digits")
    centre(model_of(RECIPE, dataset), dataset.train, 20.0, seed=0, folder=tmp_path)
    (tmp_path / "centre.jsonl").unlink()
    with pytest.raises(ResumeError, match=r"centre\.jsonl does not hold"):
        centre(model_of(RECIPE, dataset), dataset.train, 20.0, seed=0, folder=tmp_path)


def released_and_crashed(*args: Any, **settings: Any) -> Tensor:
    release_mean(*args, **settings)
    raise ZeroDivisionError


def test_a_crash_between_release_and_writing_gives_the_same_mean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = data.load("digits")
    model = model_of(RECIPE, dataset)
    with monkeypatch.context() as patched:
        patched.setattr("reticent.experiments.normalising.release_mean", released_and_crashed)
        with pytest.raises(ZeroDivisionError):
            centre(model, dataset.train, 20.0, seed=None, folder=tmp_path)
    assert len(read_entries(tmp_path / "centre.jsonl")) == 1, "it was charged"
    other = data.Examples(dataset.train.x + 1, dataset.train.y)
    with pytest.raises(ResumeError, match="other examples"):
        centre(model, other, 20.0, seed=None, folder=tmp_path)
    centre(model, dataset.train, 20.0, seed=None, folder=tmp_path)
    assert len(read_entries(tmp_path / "centre.jsonl")) == 1, "and not charged twice"


def test_a_whole_run_with_a_centre_resumes_and_loads(tmp_path: Path) -> None:
    answer = train(RECIPE, tmp_path)
    assert answer.guarantee.status == "proved"
    assert train(RECIPE, tmp_path, resume=True) == answer


def test_what_the_plan_refuses_is_not_released(tmp_path: Path) -> None:
    """Epsilon 3 does not pay for a mean with little noise and the norms besides, nor 0.01 for the mean alone."""
    dataset = data.load("digits")
    dear = replace(RECIPE, noise_multiplier=None, epsilon=0.01, centre=1.0)
    for recipe in (Recipe(data="digits", method="dpis", epsilon=3.0, centre=1.0, seed=0).filled(), dear):
        with pytest.raises(ReticentError):
            prepare(recipe, dataset, tmp_path / recipe.method)
        assert not list(tmp_path.rglob("centre.*"))


def test_what_cannot_be_centred_says_so() -> None:
    with pytest.raises(ModelError, match="Sequential"):
        models.with_centre(models.ReviewRnn(), (80,))
    with pytest.raises(SettingError, match="takes no centre"):
        train(Recipe(data="digits", method="selena", centre=20.0, epochs=1))


STATISTICS = replace(RECIPE, centre=None, statistics_noise=8.0)


def statistics(model: nn.Module) -> tuple[Tensor, Tensor]:
    layer = statistics_of(model)
    return layer.mean.flatten(), layer.std.flatten()


def coloured(examples: int = 2000) -> data.Examples:
    """Images of two colours, one dark and even, one bright and varied."""
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(examples, 2, 4, 4, generator=generator)
    x[:, 0], x[:, 1] = 0.1 + x[:, 0] * 0.05, x[:, 1] * 0.7
    return data.Examples(x, torch.zeros(examples, dtype=torch.int64))


def small_network() -> nn.Sequential:
    return models.with_statistics(nn.Sequential(nn.Flatten(), nn.Linear(32, 2)), (2, 4, 4))


def test_statistics_are_part_of_the_guarantee() -> None:
    dataset = data.load("digits")
    run = prepare(STATISTICS, dataset)
    assert run.plan.already == (Gaussian(8.0),) * 2
    both = prepare(replace(STATISTICS, centre=20.0), dataset)
    assert both.plan.already == (Gaussian(8.0), Gaussian(8.0), Gaussian(20.0))
    plain = prepare(replace(STATISTICS, statistics_noise=None), dataset)
    assert both.guarantee().epsilon > run.guarantee().epsilon > plain.guarantee().epsilon


def test_statistics_are_those_of_the_channels_and_noise_of_the_right_size() -> None:
    examples = coloured()
    means, squares = [], []
    for seed in range(60):
        model = small_network()
        standardise(model, examples, 5.0, 2, seed=seed, folder=None)
        mean, std = statistics(model)
        means.append(mean)
        squares.append(std**2 + mean**2)
    limits = [length / 2000 * 5 * 2**0.5 for length in (0.5, 0.25)]
    for released, noise, power in zip((means, squares), limits, (1, 2), strict=True):
        table = torch.stack(released)
        exact = examples.x.pow(power).mean((0, 2, 3))
        assert torch.allclose(table.mean(0), exact, atol=4 * noise / 60**0.5 + 1e-3)
        assert float(table[:, 1].std()) == pytest.approx(noise, rel=0.3)


def test_an_example_brighter_than_grey_counts_as_grey() -> None:
    """Of 2,000 black images and one of a million everywhere, the mean is a half over 2,001."""
    x = torch.zeros(2001, 1, 4, 4)
    x[7] = 1e6
    examples = data.Examples(x, torch.zeros(2001, dtype=torch.int64))
    model = models.with_statistics(nn.Sequential(nn.Flatten(), nn.Linear(16, 2)), (1, 4, 4))
    standardise(model, examples, 1e-3, 1, seed=0, folder=None)
    assert float(statistics(model)[0]) == pytest.approx(0.5 / 2001, rel=0.02)


def test_scattering_counts_its_colours_not_its_channels(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    monkeypatch.setattr("reticent.experiments.normalising.standardise", lambda *args, **_: seen.append(args[3]))
    for shape, features in (((81, 7, 7), "deskew+scattering"), ((243, 8, 8), "scattering"), ((3, 8, 8), None)):
        examples = data.Examples(torch.zeros(2, *shape), torch.zeros(2).long())
        normalise(nn.Identity(), examples, replace(STATISTICS, features=features), None)
    assert seen == [1, 3, 3]


def test_a_grey_image_is_exactly_as_long_as_the_limits_say() -> None:
    """Scattering keeps a flat image in its averages alone."""
    for colours in (1, 3):
        grey = data.Scattering((32, 32))(torch.full((1, colours, 32, 32), 0.5))
        for power, length in ((1, 0.5), (2, 0.25)):
            assert float(channel_means(grey, power).norm()) == pytest.approx(length * colours**0.5, rel=1e-3)


def test_statistics_and_centre_have_noise_of_their_own() -> None:
    """The same seed on nothing at all: three releases, three different noises."""
    nothing = data.Examples(torch.zeros(10, 4), torch.zeros(10, dtype=torch.int64))
    model = models.with_centre(models.with_statistics(nn.Sequential(nn.Linear(4, 2)), (4,)), (4,))
    normalise(model, nothing, replace(STATISTICS, centre=8.0), None)
    randomness = Randomness.from_seed(0)
    places = [noise_at(randomness, place) for place in (-2, -1)]
    mean = statistics(model)[0].double() * 10 / 8
    assert torch.allclose(mean, places[0], atol=0.07), "all but the uniform part of the noise"
    shift = mean_of(model).double() * 10 / 8 / 2
    assert not torch.allclose(shift, places[0], atol=1e-1)


def test_statistics_after_a_crash_are_the_same_and_charged_once(tmp_path: Path) -> None:
    examples = coloured(200)
    first, again = small_network(), small_network()
    standardise(first, examples, 8.0, 2, seed=None, folder=tmp_path)
    standardise(again, examples, 8.0, 2, seed=None, folder=tmp_path)
    assert all(torch.equal(a, b) for a, b in zip(statistics(first), statistics(again), strict=True))
    assert len(read_entries(tmp_path / "statistics.jsonl")) == 2


def test_the_same_coins_are_refused_for_other_noise(tmp_path: Path) -> None:
    """Two releases with one noise at two scales would reveal the mean exactly."""
    examples = coloured(200)
    standardise(small_network(), examples, 8.0, 2, seed=None, folder=tmp_path)
    with pytest.raises(BudgetSpent, match="no longer"):
        standardise(small_network(), examples, 80.0, 2, seed=None, folder=tmp_path)


def test_a_whole_run_with_statistics_resumes_and_loads(tmp_path: Path) -> None:
    recipe = replace(STATISTICS, model="linear", features="scattering", centre=20.0)
    answer = train(recipe, tmp_path)
    assert answer.guarantee.status == "proved"
    assert train(recipe, tmp_path, resume=True) == answer
    dataset = features_of(recipe)
    loaded = load(tmp_path, model_of(recipe, dataset)).model
    assert float(statistics(loaded)[1].std()) > 0, "the deviations come with the model"


def test_plain_training_is_normalised_too(tmp_path: Path) -> None:
    train_plain(STATISTICS, tmp_path)
    loaded = load(tmp_path, model_of(STATISTICS, data.load("digits"))).model
    assert float(statistics(loaded)[0]) == pytest.approx(float(data.load("digits").train.x.mean()), abs=0.02)


def test_statistics_replace_groups_and_refuse_what_is_normalised() -> None:
    network = models.with_statistics(models.build("scattering-cnn", inputs=(81, 7, 7), classes=10), (81, 7, 7))
    assert not any(isinstance(layer, nn.GroupNorm) for layer in network)
    with pytest.raises(ModelError, match="Sequential"):
        models.with_statistics(models.ReviewRnn(), (80,))
    with pytest.raises(SettingError, match="normalised already"):
        train(replace(STATISTICS, features="scattering-normalised"))
    with pytest.raises(SettingError, match="scaled already"):
        train(replace(STATISTICS, features="scattering|deskew"))
    with pytest.raises(SettingError, match="statistics_noise"):
        train(replace(STATISTICS, method="selena", noise_multiplier=None))


@pytest.mark.parametrize("method", ["dpis", "dpagd"])
def test_methods_that_plan_on_the_way_normalise_too(method: str, tmp_path: Path) -> None:
    """What the statistics cost is charged with the plan, is in the budget, and a third party prices it the same."""
    recipe = Recipe(
        data="digits", method=method, epsilon=3.0, epochs=2, batch_size=200, centre=30.0, statistics_noise=30.0, seed=0
    )
    result = train(recipe, tmp_path / "run")
    assert result.guarantee.epsilon == 3.0
    released = [
        entry.event for name in ("centre", "statistics") for entry in read_entries(tmp_path / f"run/{name}.jsonl")
    ]
    assert released.count(Gaussian(30.0)) == 3
    report = verify(tmp_path / "run")
    assert report.ok, report
