"""The game: shadows of the target's size, guessed records in half of them, nobody sees the population."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from reticent.attacks.game import Game, deal
from reticent.data import Dataset, Examples
from reticent.errors import SettingError


@pytest.fixture
def dataset() -> Dataset:
    """Every record carries its own number, so that it can be recognised."""
    train = Examples(torch.arange(200.0)[:, None], torch.arange(200) % 3)
    test = Examples(torch.arange(1000.0, 1090.0)[:, None], torch.arange(90) % 3)
    return Dataset("numbers", train, test, 3, "made up")


def test_every_shadow_has_as_many_examples_as_the_target(dataset: Dataset) -> None:
    cards = deal(Game(records=40, models=6, canaries=20), dataset)
    assert {len(cards.train(number)) for number in range(6)} == {200}


def test_guessed_records_are_half_members_and_in_half_of_the_shadows(dataset: Dataset) -> None:
    cards = deal(Game(records=40, models=6), dataset)
    numbers = cards.guessed.x[:, 0]
    assert (numbers[:40] < 200).all()
    assert (numbers[40:] >= 1000).all()
    seen = np.stack([np.isin(numbers.numpy(), cards.train(one).x[:, 0].numpy()) for one in range(6)])
    np.testing.assert_array_equal(seen, cards.keep)
    assert (seen.sum(axis=0) == 3).all()


def test_no_shadow_sees_the_population(dataset: Dataset) -> None:
    cards = deal(Game(records=40, models=4), dataset)
    for number in range(4):
        assert not np.isin(cards.population.x.numpy(), cards.train(number).x.numpy()).any()


def test_canaries_are_judged_apart(dataset: Dataset) -> None:
    cards = deal(Game(records=10, models=4, canaries=8), dataset)
    logits = np.random.default_rng(0).normal(size=(4, len(cards.asked()), 3))
    target = cards.target(nn.Linear(1, 3), logits)
    assert target.logits.shape[1] == 20 + len(cards.population)
    np.testing.assert_array_equal(target.logits[:, 20:], logits[:, 28:])
    assert cards.canary_signals(logits).phi.shape == (4, 8)


@pytest.mark.parametrize("records", [5, 100])
def test_too_few_or_too_many_records_are_refused(dataset: Dataset, records: int) -> None:
    with pytest.raises(SettingError, match="between 10 and 60"):
        deal(Game(records=records), dataset)
