"""The papers' black-box attack, split 2:1:2:1: members of an over-fitted model are found, in a fresh one nothing is."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from reticent.attacks.batched import ShadowRecipe, train_together
from reticent.attacks.metrics import auc, auc_standard_error
from reticent.attacks.salem import black_box
from reticent.data import AttackSplit, Examples, attack_split


@pytest.fixture(scope="module")
def split() -> AttackSplit:
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(900, 12, generator=rng)
    noisy = torch.randint(0, 3, (900,), generator=rng)
    y = torch.where(torch.rand(900, generator=rng) < 0.4, noisy, (x @ torch.randn(12, 3, generator=rng)).argmax(1))
    return attack_split(Examples(x, y), seed=0)


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 3))


def overfit(examples: Examples) -> nn.Module:
    recipe = ShadowRecipe(steps=200, batch_size=60, learning_rate=0.5)
    (model,) = train_together([network()], examples.x, examples.y, [np.arange(len(examples))], recipe, [0])
    return model


@pytest.mark.parametrize("kind", ["mlp", "forest"])
def test_members_of_an_overfitted_target_are_found(split: AttackSplit, kind: str) -> None:
    scores = black_box(overfit, split, kind, top=None)
    assert (len(scores.members), len(scores.outsiders)) == (300, 150)
    assert auc(scores) > 0.6


def test_nothing_is_found_in_an_untrained_target(split: AttackSplit) -> None:
    scores = black_box(lambda _: network(), split, "forest")
    assert abs(auc(scores) - 0.5) < 4 * auc_standard_error(scores)
