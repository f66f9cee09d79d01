"""Frequent words count less: what is released for it is bounded whatever a row holds, and charged once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import reticent as rt
from reticent import data
from reticent.accounting import Gaussian, Ledger, Planned
from reticent.data.features.extractors import text_features
from reticent.data.features.statistics import PresenceSum
from reticent.data.texts import as_texts
from reticent.errors import ModelError, SettingError
from reticent.experiments.parts import blueprint_of
from reticent.experiments.recipe import Recipe
from reticent.experiments.training import prepare, train
from reticent.inside import Everyone, Randomness, RoundSettings, Sealed, Vault, by_person
from reticent.models.presence import PresenceLinear, presence_of
from reticent.trained import load
from reticent.weighed import weigh

TEXTS = [f"the film was {'good' if number % 2 else 'bad'} {number % 7} and {number % 5} more" for number in range(400)]


def reviews() -> data.Dataset:
    texts = as_texts(TEXTS)
    labels = torch.tensor([number % 2 for number in range(400)])
    rows = data.Examples(torch.zeros(400, 1), labels, texts=texts)
    return data.Dataset("reviews", rows, rows, 2, "made up")


def answer(x: torch.Tensor, places: int = 5, groups: list[int] | None = None) -> torch.Tensor:
    store = by_person((x, torch.zeros(len(x))), groups=groups)
    vault = Vault(store, randomness=Randomness.from_seed(0), ledger=Ledger(None), allowance=Planned((Gaussian(1.0),)))
    draw = vault.draw(Everyone(), RoundSettings(len(store), len(store), 1.0, 1.0))
    asked = vault.ask(PresenceSum(places), draw)
    assert isinstance(asked, Sealed)
    return asked._value


rows_of_anything = st.lists(st.lists(st.integers(-3, 9), min_size=4, max_size=4), min_size=1, max_size=5)


@settings(max_examples=60, deadline=None)
@given(rows_of_anything)
def test_one_row_moves_the_sum_by_no_more_than_one(rows: list[list[int]]) -> None:
    x = torch.tensor(rows)
    alone = [answer(row[None]) for row in x]
    assert all(float(one.norm()) <= 1 + 1e-12 for one in alone), "twice the same, or what is no place"
    torch.testing.assert_close(answer(x), torch.stack(alone).sum(0))


def test_a_person_counts_as_the_mean_of_the_rows() -> None:
    x = torch.tensor([[1, 2, 0, 0], [3, 0, 0, 0], [1, 0, 0, 0]])
    found = answer(x, groups=[0, 0, 1])
    torch.testing.assert_close(found[1:4], torch.tensor([0.5 / 2**0.5 + 1, 0.5 / 2**0.5, 0.5], dtype=torch.float64))


def test_words_of_all_texts_count_less_and_rare_ones_as_before(tmp_path: Path) -> None:
    found = data.extract(reviews(), "hashed-words-4096")
    model = nn.Sequential(PresenceLinear(4096, 2))
    weigh(model, by_person(found.train), 0.2, seed=0, folder=tmp_path)
    shares = presence_of(model).shares
    frequent = text_features(["the film was and more"], "hashed-words-4096")[0]
    rare = text_features(["never seen before"], "hashed-words-4096")[0]
    assert torch.allclose(shares[frequent[frequent > 0]], torch.tensor(0.1), atol=0.005), "as if a tenth had them"
    assert torch.equal(shares[rare[rare > 0]], torch.ones(3)), "below the noise nothing is weighed"
    again = nn.Sequential(PresenceLinear(4096, 2))
    weigh(again, by_person(found.train), 0.2, seed=0, folder=tmp_path)
    assert torch.equal(presence_of(again).shares, shares), "not released twice"


def test_weighed_rows_are_as_long_as_others() -> None:
    layer = PresenceLinear(4, 1)
    layer.shares[1] = 0.1
    nn.init.ones_(layer.weight)
    places = torch.tensor([[1, 2, 0], [0, 0, 0]])
    row = torch.tensor([0.1, 1.0])
    expected = torch.tensor([[float(8 * (row / row.norm()).sum())], [0.0]])
    torch.testing.assert_close(layer(places) - layer.bias, expected)


RECIPE = Recipe(epsilon=3.0, delta=1e-5, model="linear", features="hashed-words-256", statistics_noise=20.0, seed=0)


def test_a_run_is_charged_for_it_and_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reticent.experiments.training.examples", lambda _: data.extract(reviews(), RECIPE.features))
    recipe = replace(RECIPE, epochs=2.0, batch_size=100.0)
    made = prepare(recipe.filled(), data.extract(reviews(), "hashed-words-256"))
    assert made.plan.already == (Gaussian(20.0),)
    plain = prepare(replace(recipe, statistics_noise=None).filled(), data.extract(reviews(), "hashed-words-256"))
    assert plain.plan.settings.noise_multiplier < made.plan.settings.noise_multiplier
    result = train(recipe.filled(), tmp_path)
    assert result.guarantee.status == "proved"
    assert result.guarantee.epsilon <= 3.0
    assert train(recipe.filled(), tmp_path, resume=True) == result
    trained = load(tmp_path)
    assert presence_of(trained.model).shares.min() < 1
    assert len(trained.predict(["the film was good"])) == 1


def test_in_python_it_is_one_word() -> None:
    found = data.extract(reviews(), "hashed-words-256")
    examples = rt.normalise((found.train.x, found.train.y), budget_share=0.1)
    trained = rt.fit(nn.Sequential(PresenceLinear(256, 2)), examples, epsilon=2.0, epochs=1, seed=0)
    assert trained.guarantee.epsilon <= 2.0
    assert presence_of(trained.model).shares.min() < 1


def test_rows_of_more_axes_are_bounded_as_well() -> None:
    x = torch.tensor([[[1, 2, 3]], [[1, 2, 3]], [[4, 4, 0]]])
    found, without = answer(x), answer(x[:2])
    assert float((found - without).norm()) <= 1 + 1e-12


def test_shares_of_a_run_that_broke_off_are_not_taken_for_new(monkeypatch: pytest.MonkeyPatch) -> None:
    found, model = data.extract(reviews(), "hashed-words-256"), nn.Sequential(PresenceLinear(256, 2))
    examples = (found.train.x, found.train.y)

    def broken_off(*args: object, **settings: object) -> None:
        weigh(*args, **settings)
        raise KeyboardInterrupt

    monkeypatch.setattr("reticent.normalised.weigh", broken_off)
    with pytest.raises(KeyboardInterrupt):
        rt.fit(model, rt.normalise(examples, noise_multiplier=3.0), epsilon=2.0, epochs=1, seed=0)
    assert presence_of(model).shares.min() < 1
    with pytest.raises(SettingError):
        rt.fit(model, examples, epsilon=2.0, epochs=1, seed=0)


def test_models_of_before_have_no_shares() -> None:
    old = {name: part for name, part in PresenceLinear(4, 2).state_dict().items() if name != "shares"}
    model = nn.Sequential(PresenceLinear(4, 2))
    model.load_state_dict({f"0.{name}": part for name, part in old.items()})
    assert torch.equal(model[0].shares, torch.ones(5))


def test_a_centre_of_words_is_still_refused() -> None:
    found = data.extract(reviews(), "hashed-words-64")
    with pytest.raises(ModelError, match="statistics_noise"):
        blueprint_of(Recipe(model="linear", centre=5.0), found).build()


def test_nothing_is_counted_in_single_precision() -> None:
    x = torch.from_numpy(np.tile([[1, 2, 3, 0]], (1000, 1)))
    assert answer(x).dtype == torch.float64
