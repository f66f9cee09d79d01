"""The suite: every attack by name on one target whose membership only the judge knows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from reticent.attacks.metrics import auc
from reticent.attacks.permitted import exceeds
from reticent.attacks.suite import ATTACKS, Target, run_attack
from reticent.attacks.whitebox import layer_norms, logits_of, white_box_features
from reticent.errors import UnknownName


@pytest.fixture(scope="session")
def target(overfitted: object) -> Target:
    """Model 0 is the target, the others are its shadows."""
    toy = overfitted
    logits = np.stack([logits_of(model, toy.x) for model in toy.models[1:]])
    keep = toy.signals.keep
    return Target(toy.models[0], toy.x[:500], toy.y[:500], keep[0], (toy.x[500:], toy.y[500:]), logits, keep[1:])


@pytest.mark.parametrize("name", ATTACKS)
def test_every_attack_finds_the_members_of_an_overfitted_model(target: Target, name: str) -> None:
    assert auc(run_attack(name, target)) > 0.6


@pytest.mark.parametrize("name", [name for name in ATTACKS if name not in {"whitebox", "blackbox-forest"}])
def test_an_attack_is_not_told_who_the_members_are(target: Target, name: str) -> None:
    """Only the white-box attack knows a part of them, and is judged on the rest."""
    other = Target(target.model, target.x, target.y, ~target.members, target.population, target.logits, target.keep)
    np.testing.assert_array_equal(ATTACKS[name](target), ATTACKS[name](other))


def test_an_unknown_attack_is_refused(target: Target) -> None:
    with pytest.raises(UnknownName, match="lira"):
        run_attack("lyra", target)


def test_layer_norms_are_those_of_single_examples(target: Target) -> None:
    found = layer_norms(target.model, target.x[:5], target.y[:5])
    for row in range(5):
        loss = cross_entropy(target.model(target.x[row : row + 1]), target.y[row : row + 1])
        grads = torch.autograd.grad(loss, list(target.model.parameters()))
        np.testing.assert_allclose(found[row], [float(grad.norm()) for grad in grads], rtol=1e-4)
    assert all(parameter.requires_grad for parameter in target.model.parameters())


def test_white_box_features_leave_the_model_alone(target: Target) -> None:
    before = [parameter.detach().clone() for parameter in target.model.parameters()]
    features = white_box_features(target.model, target.x[:7], target.y[:7])
    assert features.shape[0] == 7
    assert np.isfinite(features).all()
    assert all(torch.equal(now, then) for now, then in zip(target.model.parameters(), before, strict=True))


def test_an_attack_above_the_permitted_curve_is_an_alarm(target: Target) -> None:
    scores = run_attack("lira", target)
    assert exceeds(scores, epsilon=0.1, delta=1e-5)
    assert not exceeds(scores, epsilon=8.0, delta=1e-5)


def test_logits_are_those_of_evaluation_mode() -> None:
    model = nn.Sequential(nn.Dropout(0.9), nn.Linear(3, 2))
    x = torch.randn(10, 3)
    np.testing.assert_array_equal(logits_of(model, x), logits_of(model, x))
