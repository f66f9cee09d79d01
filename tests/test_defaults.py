"""Defaults: one rule from public numbers, the same on both surfaces; what is said wins."""

from __future__ import annotations

from dataclasses import replace
from statistics import NormalDist, fmean
from typing import Any

import pytest
import torch
from torch import nn

import reticent as rt
from reticent import data
from reticent.accounting import Budget
from reticent.defaults import FEWEST, LONGEST, MOST, Public, choose
from reticent.errors import ReticentError
from reticent.experiments.recipe import Recipe
from reticent.experiments.settling import ruled, settled
from reticent.experiments.training import examples, train
from reticent.settling import RULED, settle

PUBLIC = Public(size=20_000, parameters=500, epsilon=3.0, delta=1e-6)


def test_changing_every_value_of_the_data_changes_no_setting() -> None:
    dataset = data.load("digits")
    other = replace(dataset, train=data.Examples(torch.rand_like(dataset.train.x) * 100, dataset.train.y.flip(0)))
    recipe = Recipe(data="digits", epsilon=3.0).filled()
    assert settled(recipe, dataset) == settled(recipe, other)
    about = [
        rt.fit(nn.Linear(4, 2), (x, torch.arange(200) % 2), epsilon=2.0, seed=0).about
        for x in (torch.zeros(200, 4), 1e3 * torch.ones(200, 4))
    ]
    assert [part["settings"] for part in about] == [about[0]["settings"]] * 2


def test_both_surfaces_choose_the_same() -> None:
    recipe = settled(Recipe(data="digits", epsilon=2.0).filled(), dataset := data.load("digits"))
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    trained = rt.fit(model, dataset.train, epsilon=2.0, seed=0)
    chosen: Any = trained.about["settings"]
    assert {name: getattr(recipe, name) for name in RULED} == {name: chosen[name] for name in RULED}
    assert trained.about["by_rule"] == list(RULED)


@pytest.mark.parametrize("method", ["dpsgd", "dpadam", "dpsign_sgd", "dpsign_adam", "sa_dpsgd", "dpagd", "dpsur"])
def test_both_surfaces_choose_the_same_for_other_methods(method: str) -> None:
    """On data that no preset knows of."""
    dataset = replace(data.load("digits"), name="own")
    recipe = settled(replace(Recipe(data="purchase100", method=method, epsilon=2.0).filled()), dataset)
    found = settle({}, nn.Linear(64, 10), rt.methods.get(method), size=1437, budget=Budget(2.0, 1e-5)).settings
    assert {name: getattr(recipe, name) for name in RULED} == {name: getattr(found, name) for name in RULED}
    assert recipe.max_grad_norm == rt.methods.get(method).max_grad_norm


def test_what_is_said_wins_and_the_rest_follows_from_it() -> None:
    said = {"batch_size": 100.0, "epochs": 3.0, "lr": 0.7, "momentum": 0.0, "average_last": 0.5}
    found = choose(PUBLIC, **said)
    assert {name: getattr(found, name) for name in said} == said
    shorter = choose(PUBLIC, epochs=1.0)
    assert shorter.epochs == 1.0
    assert shorter.lr > choose(PUBLIC).lr, "fewer steps are longer ones"
    assert choose(PUBLIC, lr=0.7).average_last == 0.0, "whoever says the step gets no averaging without saying so"


def test_explicit_settings_give_exactly_what_they_gave() -> None:
    """The model of a run whose settings are all said is that of the run made by hand."""
    x, y = torch.randn(300, 5, generator=torch.Generator().manual_seed(0)), torch.arange(300) % 2
    models = []
    for by_hand in (True, False):
        torch.manual_seed(0)
        model = nn.Linear(5, 2)
        if by_hand:
            optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
            run = rt.Run(
                model, optimizer, (x, y), method=rt.methods.dpsgd(), batch_size=30, epochs=2,
                budget=Budget(3.0, 1e-5), seed=1,
            )  # fmt: skip
            for _ in run:
                pass
        else:
            rt.fit(model, (x, y), epsilon=3.0, delta=1e-5, batch_size=30, epochs=2, lr=0.5, seed=1)
        models.append(model)
    assert torch.equal(models[0].weight, models[1].weight)


def test_settling_twice_is_settling_once() -> None:
    dataset = data.load("digits")
    once = settled(Recipe(data="digits", epsilon=3.0).filled(), dataset)
    assert settled(once, dataset) == once
    assert ruled(once, once) == ()


@pytest.mark.parametrize("size", [10, 100, 10_000, 10_000_000])
@pytest.mark.parametrize("parameters", [1, 1000, 10_000_000])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 100.0, None])
def test_every_choice_can_be_run(size: int, parameters: int, epsilon: float | None) -> None:
    found = choose(Public(size=size, parameters=parameters, epsilon=epsilon, delta=min(1e-5, 0.1 / size)))
    assert 0 < found.batch_size <= size
    assert FEWEST <= found.rounds <= MOST
    assert 0 < found.lr <= LONGEST


def test_signs_go_as_far_as_sgd_with_momentum_does_on_the_same_noise() -> None:
    """Where noise hides the signal: ten steps of momentum 0.9 are one, and a mean sign is sqrt(2/pi) signal / noise."""
    sgd, sign = choose(PUBLIC), choose(replace(PUBLIC, signs=True), momentum=0.0)
    noise, signal = PUBLIC.noise(sgd.batch_size, sgd.rounds) / sgd.batch_size, 1e-6
    mean_sign = 2 * NormalDist().cdf(signal / noise) - 1
    assert sign.lr * mean_sign == pytest.approx(sgd.lr * signal / (1 - sgd.momentum), rel=0.01)
    summed = choose(replace(PUBLIC, signs=True))
    assert summed.lr == pytest.approx(sign.lr / 10, rel=0.01), "momentum makes the same way of shorter steps"
    assert choose(replace(PUBLIC, signs=True, optimizer="adam")).lr == sign.lr
    assert choose(replace(PUBLIC, signs=True, noise_multiplier=0.0), momentum=0.0).lr > 0


def test_more_privacy_is_a_weaker_signal() -> None:
    signals = [choose(replace(PUBLIC, epsilon=epsilon)).signal for epsilon in (0.5, 1.0, 3.0, 8.0)]
    assert signals == sorted(signals)
    assert choose(replace(PUBLIC, parameters=50_000)).signal < choose(PUBLIC).signal


def test_the_noise_is_about_that_of_the_plan() -> None:
    """The central limit theorem is near enough for a choice; the plan's own accountant decides."""
    found = choose(PUBLIC)
    planned = rt.methods.plan(
        rt.methods.dpsgd(), size=PUBLIC.size, batch_size=found.batch_size, epochs=found.epochs, budget=Budget(3.0, 1e-6)
    )
    assert planned.rounds == found.rounds
    assert PUBLIC.noise(found.batch_size, found.rounds) == pytest.approx(planned.settings.noise_multiplier, rel=0.1)


def test_the_choice_is_told_with_the_run() -> None:
    result = train(Recipe(data="digits", epsilon=3.0, epochs=1, seed=0))
    assert result.by_rule == ("batch_size", "lr", "momentum", "average_last", "max_grad_norm")
    assert result.answer()["recipe"]["lr"] > 0  # type: ignore[index]


def _adult() -> data.Dataset:
    try:
        return examples(Recipe(data="adult"))
    except ReticentError as error:
        pytest.skip(f"needs Adult: {error}")


@pytest.mark.slow
def test_adult_reaches_85_percent_with_nothing_said_on_both_surfaces() -> None:
    dataset = _adult()
    assert dataset.test is not None
    told = [train(Recipe(data="adult", epsilon=3.0, seed=seed)).accuracy or 0.0 for seed in range(3)]
    assert fmean(told) >= 0.85
    called = []
    for seed in range(3):
        torch.manual_seed(seed)
        trained = rt.fit(nn.Linear(108, 2), dataset.train, epsilon=3.0, seed=seed)
        called.append(trained.evaluate(*dataset.test)["accuracy"])
    assert fmean(called) >= 0.85
