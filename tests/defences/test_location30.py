"""The defences on Location-30, a benchmark of the attack literature, beside plain training and stopping it early."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import torch
from torch import nn

from reticent import data, models
from reticent.attacks import Scores, auc, confidence
from reticent.data.examples import Dataset, Examples
from reticent.data.loading.places import data_folder
from reticent.defences import Plain, defend
from reticent.defences.defended import probabilities
from reticent.defences.plain import fit, known_chance

pytestmark = [pytest.mark.data, pytest.mark.slow]

SETTINGS = {"epochs": 20, "batch_size": 128, "lr": 1e-3}


class Judged(NamedTuple):
    """Accuracy on test examples, and how well the loss tells members from them."""

    accuracy: float
    auc: float


@pytest.fixture(scope="module")
def location() -> Dataset:
    folder = data_folder()
    if not (folder / "location30").is_dir():
        pytest.skip(f"location30 is not in {folder}: set $RETICENT_DATA")
    return data.load("location30")


def make_model() -> nn.Module:
    return models.build("mlp", inputs=(446,), classes=30, activation="relu")


def undefended(examples: Examples, seed: int, epochs: int) -> nn.Module:
    with known_chance(seed):
        model = make_model()
    plain, size = Plain(**SETTINGS | {"epochs": epochs}), len(examples)
    fit(model, *examples, torch.arange(size), plain, rounds=plain.rounds(size), seed=seed, tell=lambda _: None)
    return model


def judge(title: str, model: nn.Module, members: Examples, test: Examples) -> Judged:
    model.eval()
    with torch.no_grad():
        scores = [confidence(model(x).numpy(), y.numpy()) for x, y in (members, test)]
    right = (probabilities(model, test.x).argmax(1) == test.y).float().mean()
    found = Judged(float(right), auc(Scores(*scores)))
    print(f"{title:25} accuracy {found.accuracy:.3f}  AUC of the loss {found.auc:.3f}")
    return found


@pytest.mark.parametrize("seed", range(3))
def test_selena_defends_and_advreg_does_less_than_stopping_early(location, seed):
    train, test = location.train, location.test
    print(f"\nseed {seed}")
    plain = judge("plain", undefended(train, seed, 20), train, test)
    early = judge("plain, 6 epochs", undefended(train, seed, 6), train, test)
    small, selena = (
        judge(
            f"SELENA, {K}/{L}", defend("selena", make_model, train, seed=seed, K=K, L=L, **SETTINGS).model, train, test
        )
        for K, L in ((10, 4), (25, 10))
    )
    regularised = {}
    for penalty in (0.0, 0.5, 1.0, 2.0):
        found = defend("advreg", make_model, train, seed=seed, penalty=penalty, **SETTINGS)
        regularised[penalty] = judge(f"AdvReg, penalty {penalty}", found.model, train.take(found.members), test)

    assert plain.auc > 0.65
    for found in (selena, small):
        assert found.accuracy > plain.accuracy - 0.04
        assert found.auc - 0.5 < 0.55 * (plain.auc - 0.5)
    assert regularised[1.0].accuracy > regularised[0.0].accuracy - 0.06
    assert regularised[1.0].auc < regularised[0.0].auc - 0.01
    assert regularised[2.0].auc < regularised[1.0].auc
    assert all(early.auc < each.auc - 0.03 for each in regularised.values())
    assert early.accuracy > max(each.accuracy for each in regularised.values()) - 0.03
