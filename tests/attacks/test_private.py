"""On a model with epsilon 1 no attack does better than the guarantee permits: 2,000 members, 2,000 others."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import ndtr
from torch import nn

import reticent as rt
from reticent.accounting import mu
from reticent.attacks.metrics import Scores, auc, auc_standard_error
from reticent.attacks.signals import paired_design
from reticent.attacks.suite import ATTACKS, Target, run_attack
from reticent.attacks.whitebox import logits_of

RECORDS, POPULATION, MODELS = 2000, 500, 5
EPSILON, DELTA = 1.0, 1e-5
PERMITTED = float(ndtr(mu(EPSILON, DELTA) / np.sqrt(2)))
"""The AUC of the best test between two neighbours of a Gaussian mechanism that costs this much."""


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
        models.append(
            rt.fit(
                net, (x[rows], y[rows]), epsilon=EPSILON, delta=DELTA, epochs=4, batch_size=200, lr=1.0, seed=number
            ).model
        )
    logits = np.stack([logits_of(model, x) for model in models[1:]])
    cut = 2 * RECORDS
    return Target(models[0], x[:cut], y[:cut], keep[0], (x[cut:], y[cut:]), logits, keep[1:])


@pytest.mark.parametrize("name", [name for name in ATTACKS if name != "whitebox"])
def test_an_attack_on_a_private_model_is_within_what_is_permitted(target: Target, name: str) -> None:
    scores: Scores = run_attack(name, target)
    assert min(len(scores.members), len(scores.outsiders)) >= 2000
    assert auc(scores) < PERMITTED + 4 * auc_standard_error(scores)


@pytest.mark.slow
def test_the_white_box_attack_on_a_private_model_is_within_what_is_permitted(target: Target) -> None:
    scores = run_attack("whitebox", target)
    assert auc(scores) < PERMITTED + 4 * auc_standard_error(scores)


def test_without_privacy_an_attack_passes_that_limit() -> None:
    """The limit is one that can be passed: a model that learned 60 random labels by heart."""
    torch.manual_seed(0)
    x, y = torch.randn(120, 10), torch.randint(0, 3, (120,))
    net = nn.Sequential(nn.Linear(10, 64), nn.Tanh(), nn.Linear(64, 3))
    adam = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(300):
        adam.zero_grad()
        nn.functional.cross_entropy(net(x[:60]), y[:60]).backward()
        adam.step()
    losses = -nn.functional.cross_entropy(net(x), y, reduction="none").detach().numpy()
    scores = Scores(losses[:60], losses[60:])
    assert auc(scores) > PERMITTED + 4 * auc_standard_error(scores)
