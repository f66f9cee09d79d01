"""On a model with epsilon 1 every attack is within chance: 2,000 members against 2,000 non-members."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import reticent as rt
from reticent.attacks.metrics import Scores, auc, auc_standard_error
from reticent.attacks.signals import paired_design
from reticent.attacks.suite import ATTACKS, Target, run_attack
from reticent.attacks.whitebox import logits_of

RECORDS, POPULATION, MODELS = 2000, 500, 5


@pytest.fixture(scope="module")
def target() -> Target:
    """Five models of one private pipeline, trained on half of the records each; the first is the target."""
    torch.set_num_threads(1)
    rng = torch.Generator().manual_seed(1)
    x = torch.randn(2 * RECORDS + POPULATION, 10, generator=rng)
    y = (x @ torch.randn(10, 3, generator=rng)).argmax(1)
    keep = paired_design(MODELS + 1, 2 * RECORDS, seed=0)[:MODELS]
    models = []
    for number, row in enumerate(keep):
        rows = torch.from_numpy(np.flatnonzero(row))
        torch.manual_seed(number)
        net = nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 3))
        models.append(rt.fit(net, (x[rows], y[rows]), epsilon=1.0, epochs=4, batch_size=200, lr=1.0, seed=number).model)
    logits = np.stack([logits_of(model, x) for model in models[1:]])
    cut = 2 * RECORDS
    return Target(models[0], x[:cut], y[:cut], keep[0], (x[cut:], y[cut:]), logits, keep[1:])


@pytest.mark.parametrize("name", [name for name in ATTACKS if name != "whitebox"])
def test_an_attack_on_a_private_model_is_within_chance(target: Target, name: str) -> None:
    scores: Scores = run_attack(name, target)
    assert min(len(scores.members), len(scores.outsiders)) >= 2000
    assert abs(auc(scores) - 0.5) < 4 * auc_standard_error(scores)


@pytest.mark.slow
def test_the_white_box_attack_on_a_private_model_is_within_chance(target: Target) -> None:
    scores = run_attack("whitebox", target)
    assert abs(auc(scores) - 0.5) < 4 * auc_standard_error(scores)
