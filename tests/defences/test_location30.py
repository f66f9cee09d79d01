"""Both defences on Location-30, the benchmark of the attack literature: accuracy kept, members less exposed."""

from __future__ import annotations

import pytest
import torch

from reticent import data, models
from reticent.attacks import Scores, auc, confidence
from reticent.data.places import data_folder
from reticent.defences import Plain, defend
from reticent.defences.defended import probabilities
from reticent.defences.plain import fit, known_chance

pytestmark = [pytest.mark.data, pytest.mark.slow]

SETTINGS = {"epochs": 20, "batch_size": 128, "lr": 1e-3}


def make_model() -> torch.nn.Module:
    return models.build("mlp", inputs=(446,), classes=30, activation="relu")


@pytest.fixture(scope="module")
def location():
    folder = data_folder()
    if not (folder / "location30").is_dir():
        pytest.skip(f"location30 is not in {folder}: set $RETICENT_DATA")
    return data.load("location30")


def judged(model, members, test) -> tuple[float, float]:
    """Test accuracy, and the AUC of the loss between members and test examples."""
    model.eval()
    with torch.no_grad():
        scores = [confidence(model(x).numpy(), y.numpy()) for x, y in (members, test)]
    right = (probabilities(model, test.x).argmax(1) == test.y).float().mean()
    return float(right), auc(Scores(*scores))


def undefended(examples):
    with known_chance(0):
        model = make_model()
    plain, size = Plain(**SETTINGS), len(examples)
    fit(model, *examples, torch.arange(size), plain, rounds=plain.rounds(size), seed=0, tell=lambda _: None)
    return model


def test_selena_keeps_accuracy_and_halves_the_leak(location):
    before, leak_before = judged(undefended(location.train), location.train, location.test)
    found = defend("selena", make_model, location.train, seed=0, **SETTINGS)
    after, leak_after = judged(found.model, location.train, location.test)
    print(f"\nplain: accuracy {before:.3f}, AUC {leak_before:.3f}; SELENA: {after:.3f}, {leak_after:.3f}")
    assert leak_before > 0.65
    assert after > before - 0.03
    assert leak_after - 0.5 < 0.55 * (leak_before - 0.5)


def test_advreg_lowers_the_leak_of_its_members_for_some_accuracy(location):
    found = defend("advreg", make_model, location.train, seed=0, **SETTINGS)
    members = location.train.take(found.members)
    before, leak_before = judged(undefended(members), members, location.test)
    after, leak_after = judged(found.model, members, location.test)
    print(
        f"\nplain on its members: accuracy {before:.3f}, AUC {leak_before:.3f}; AdvReg: {after:.3f}, {leak_after:.3f}"
    )
    assert after > before - 0.06
    assert leak_after < leak_before - 0.01
