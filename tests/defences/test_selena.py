"""SELENA: nobody answers for an example they saw, and a planted violation of that is caught."""

from __future__ import annotations

import importlib
import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils import parameters_to_vector as flat

from reticent.data import Examples
from reticent.defences import Plain
from reticent.defences.defended import probabilities
from reticent.defences.selena import selena
from reticent.defences.split_ai import SplitAI, draw_table, split_ai
from reticent.errors import DataError, ModelError, ReticentError, SettingError, UnknownName

K, L = 6, 2


def trained_split(examples: Examples, make_model) -> SplitAI:
    return split_ai(make_model, examples, Plain(epochs=2, batch_size=20), K=K, L=L, seed=0, tell=lambda _: None)


@pytest.fixture
def ensemble(points, small):
    return trained_split(points, small)


# -- the table ---------------------------------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(size=st.integers(1, 60), sizes=st.tuples(st.integers(1, 30), st.integers(1, 30)), seed=st.integers(0, 2**31))
def test_each_example_is_left_out_of_exactly_l_sub_models(size, sizes, seed):
    few, many = min(sizes), max(sizes) + 1
    table = draw_table(size, many, few, seed)
    assert table.shape == (size, few)
    assert ((table >= 0) & (table < many)).all()
    assert all(len(set(row)) == few for row in table.tolist())


def test_every_sub_model_is_left_out_equally_often():
    counts = draw_table(20_000, 25, 10, seed=0).flatten().bincount(minlength=25)
    spread = math.sqrt(20_000 * 0.4 * 0.6)
    assert (counts - 8_000).abs().max() < 5 * spread


def test_seen_is_the_rest_of_the_table(ensemble, points):
    for example in range(len(points)):
        answering = set(ensemble.unseen[example].tolist())
        assert len(answering) == L
        assert {k for k in range(K) if not ensemble.seen[k, example]} == answering


# -- what the sub-models really saw ------------------------------------------------------------------------------------


def touched(examples: Examples, example: int, make_model) -> set[int]:
    """The sub-models that one example reaches, found by poisoning it: its NaNs ruin whoever sees them."""
    poisoned = examples.x.clone()
    poisoned[example] = math.nan
    ruined = trained_split(Examples(poisoned, examples.y), make_model)
    return {k for k, model in enumerate(ruined.models) if torch.isnan(flat(model.parameters())).any()}


@pytest.mark.parametrize("example", [0, 57, 199])
def test_an_example_reaches_only_the_sub_models_that_do_not_answer_for_it(ensemble, points, small, example):
    assert touched(points, example, small) == set(range(K)) - set(ensemble.unseen[example].tolist())


def test_the_sub_models_that_answer_are_bit_for_bit_those_without_the_example(ensemble, points, small):
    changed = trained_split(Examples(points.x.index_fill(0, torch.tensor([57]), 9.0), points.y), small)
    for k in range(K):
        same = torch.equal(flat(ensemble.models[k].parameters()), flat(changed.models[k].parameters()))
        assert same is (k in ensemble.unseen[57].tolist())


def test_training_on_everything_is_caught(points, small, monkeypatch):
    """The planted bug: a trainer that ignores which rows it was given."""
    module = importlib.import_module("reticent.defences.split_ai")
    honest = module.fit_together

    def careless(models, x, y, rows, plain, **rest):
        honest(models, x, y, [torch.arange(len(x)) for _ in rows], plain, **rest)

    monkeypatch.setattr(module, "fit_together", careless)
    assert touched(points, 57, small) == set(range(K))


# -- the answers -------------------------------------------------------------------------------------------------------


def test_an_answer_is_the_average_of_those_who_did_not_see_the_example(ensemble, points):
    rows = torch.tensor([5, 190, 33])
    each = torch.stack([probabilities(model, points.x[rows]) for model in ensemble.models])
    expected = torch.stack([each[ensemble.unseen[row], place].mean(0) for place, row in enumerate(rows.tolist())])
    torch.testing.assert_close(ensemble.answer(points.x[rows], rows), expected)


def test_a_sub_model_that_saw_the_example_may_not_answer(ensemble, points):
    """The planted violation: one entry of the table names a sub-model that was trained on the example."""
    wrong = ensemble.unseen.clone()
    wrong[33, 1] = next(k for k in range(K) if ensemble.seen[k, 33])
    broken = replace(ensemble, unseen=wrong)
    with pytest.raises(ReticentError, match=rf"sub-model {wrong[33, 1]} was trained on example 33"):
        broken.answer(points.x, torch.arange(200))
    broken.answer(points.x[:33], torch.arange(33))  # nobody else is concerned


def test_outsiders_are_answered_by_l_models_like_members(ensemble, points):
    answers = ensemble.answer_outsiders(points.x[:5], seed=1)
    each = torch.stack([probabilities(model, points.x[:5]) for model in ensemble.models])
    choices = [each[row].mean(0) for row in ensemble.unseen]
    for place, answer in enumerate(answers):
        assert any(torch.allclose(answer, choice[place]) for choice in choices)


# -- the whole ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def defended(task):
    torch.set_num_threads(1)
    return selena(task.make_model, task.members, K=10, L=4, seed=0, **task.settings)


def test_members_stand_out_much_less_at_no_loss_of_accuracy(task, undefended, defended):
    before, after = task.leak(undefended), task.leak(defended.model)
    assert before.auc > 0.7  # it does over-fit
    assert after.auc - 0.5 < 0.5 * (before.auc - 0.5)
    assert after.gap < 0.5 * before.gap
    assert task.accuracy(defended.model) > task.accuracy(undefended) - 0.03


def test_the_released_model_learns_answers_and_never_labels(points, small, monkeypatch):
    module = importlib.import_module("reticent.defences.selena")
    taught = []
    monkeypatch.setattr(module, "fit", lambda model, x, y, *rest, **more: taught.append(y))
    found = selena(small, points, K=K, L=L, epochs=1, seed=0)
    (targets,) = taught
    assert torch.equal(targets, found.ensemble.answer(points.x, torch.arange(200)))


def test_the_seed_decides_everything(points, small):
    one, again, other = (selena(small, points, K=K, L=L, epochs=2, seed=seed) for seed in (7, 7, 8))
    assert torch.equal(flat(one.model.parameters()), flat(again.model.parameters()))
    assert torch.equal(one.ensemble.unseen, again.ensemble.unseen)
    assert not torch.equal(flat(one.model.parameters()), flat(other.model.parameters()))


def test_it_claims_nothing(points, small):
    trained = selena(small, points, K=K, L=L, epochs=1)
    assert trained.guarantee.status == "none"
    assert math.isinf(trained.guarantee.epsilon)
    assert str(trained.guarantee).startswith("no differential privacy: ")


@pytest.mark.parametrize(
    ("setting", "error", "says"),
    [
        ({"K": 10, "L": 10}, SettingError, "1 <= L < K"),
        ({"K": 3, "L": 5}, SettingError, "1 <= L < K"),
        ({"L": 0}, SettingError, "1 <= L < K"),
        ({"distil_epochs": 0.0}, SettingError, "distil_epochs"),
        ({"epoch": 3}, UnknownName, "did you mean 'epochs'"),
    ],
    ids=str,
)
def test_impossible_settings_are_refused(points, small, setting, error, says):
    with pytest.raises(error, match=says):
        selena(small, points, **setting)


def test_too_few_examples_for_so_many_sub_models(points, small):
    with pytest.raises(DataError, match="too few"):
        selena(small, points.take(torch.arange(5)), K=25, L=24)


def test_sub_models_that_are_one_and_the_same_are_refused(points, small):
    model = small()
    with pytest.raises(ModelError, match="fresh module"):
        selena(lambda: model, points, K=K, L=L)


def test_a_frozen_part_may_be_shared(points):
    features = nn.Linear(4, 3).requires_grad_(False)
    found = selena(lambda: nn.Sequential(features, nn.Linear(3, 2)), points, K=K, L=L, epochs=1, seed=0)
    assert found.model[0] is features


def test_nothing_to_train_on(small):
    with pytest.raises(DataError, match="no examples"):
        selena(small, (torch.zeros(0, 4), torch.zeros(0, dtype=torch.long)))
