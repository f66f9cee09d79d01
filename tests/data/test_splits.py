"""Splits for attacks share no record; canaries are what they say and are planted by fair coins."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from reticent import data
from reticent.data.canaries import KINDS
from reticent.errors import SettingError, UnknownName


def numbered(count):
    return data.Examples(torch.arange(count, dtype=torch.float32)[:, None], torch.arange(count))


@given(st.integers(0, 200), st.integers(0, 5))
def test_parts_are_disjoint_complete_and_in_proportion(count, seed):
    split = data.attack_split(numbered(count), seed=seed)
    parts = [split.target_train.y, split.target_test.y, split.shadow_train.y, split.shadow_test.y]
    assert sorted(torch.cat(parts).tolist()) == list(range(count))
    for part, share in zip(parts, (2, 1, 2, 1), strict=True):
        assert abs(len(part) - count * share / 6) <= 1


def test_the_split_is_shuffled_and_repeatable():
    one, two, other = (data.attack_split(numbered(60), seed=seed).target_train.y for seed in (1, 1, 2))
    assert torch.equal(one, two)
    assert not torch.equal(one, other)
    assert one.tolist() != sorted(one.tolist())


def test_duplicates_go_within_and_across():
    train = data.Examples(torch.tensor([[1, 2], [1, 2], [3, 4]]), torch.tensor([0, 0, 1]))
    test = data.Examples(torch.tensor([[3, 4], [5, 6], [5, 6]]), torch.tensor([1, 0, 0]))
    assert data.without_duplicates(train).x.tolist() == [[1, 2], [3, 4]]
    assert data.without_duplicates(test, against=train).x.tolist() == [[5, 6]]


@pytest.mark.data
def test_duplicates_of_imdb(large):
    imdb = data.load("imdb", folder=large("imdb"))
    train = data.without_duplicates(imdb.train)
    test = data.without_duplicates(imdb.test, against=imdb.train)
    # By full text 96 surplus copies are in train, 199 in test and 123 test reviews in train; what the network reads,
    # the first 80 words, may agree more often, never less.
    assert 96 <= 25_000 - len(train) <= 150
    assert 199 <= 25_000 - len(test) <= 199 + 123 + 100
    assert len(data.without_duplicates(train)) == len(train)


@pytest.mark.parametrize("kind", KINDS)
def test_canaries_have_wrong_labels_and_inputs_of_their_kind(kind):
    base = data.Examples(torch.rand(100, 1, 4, 4), torch.randint(0, 10, (100,)))
    canaries = data.make_canaries(base, 40, classes=10, kind=kind, seed=3)
    again = data.make_canaries(base, 40, classes=10, kind=kind, seed=3)
    assert torch.equal(canaries.x, again.x)
    assert canaries.x.shape == (40, 1, 4, 4)
    assert float(canaries.x.min()) >= 0
    assert float(canaries.x.max()) <= 1
    if kind in ("mislabelled", "near-duplicates"):
        distance = (canaries.x[:, None] - base.x[None]).abs().amax((2, 3, 4))
        nearest, original = distance.min(1)
        assert float(nearest.max()) <= (0 if kind == "mislabelled" else 0.05)
        assert not (canaries.y == base.y[original]).any()


def test_word_ids_can_only_be_mislabelled():
    base = data.Examples(torch.randint(0, 50, (10, 5)), torch.zeros(10, dtype=torch.int64))
    assert data.make_canaries(base, 4, classes=2).y.tolist() == [1] * 4
    with pytest.raises(SettingError, match="mislabelled"):
        data.make_canaries(base, 4, classes=2, kind="noise")


@pytest.mark.parametrize("count", [0, 11])
def test_impossible_numbers_of_canaries(count):
    with pytest.raises(SettingError, match="cannot make"):
        data.make_canaries(numbered(10), count, classes=2)


def test_unknown_kinds_of_canaries():
    with pytest.raises(UnknownName, match="did you mean 'blank'"):
        data.make_canaries(numbered(10), 2, classes=2, kind="blanc")


def test_each_canary_is_planted_by_a_fair_coin():
    base, canaries = numbered(5), data.Examples(torch.arange(100.0, 600)[:, None], torch.arange(500))
    planted = data.plant(base, canaries, seed=0)
    assert torch.equal(planted.train.x[:5], base.x)
    assert torch.equal(planted.train.x[5:], canaries.x[planted.included])
    assert 200 < int(planted.included.sum()) < 300  # 4.5 standard deviations each way
    assert not torch.equal(planted.included, data.plant(base, canaries, seed=1).included)


def test_what_examples_stand_on_they_stand_on_with_canaries_too():
    base = replace(numbered(5), stands_on=("the features count as public",))
    assert data.plant(base, numbered(5), seed=0).train.assumes == base.assumes
