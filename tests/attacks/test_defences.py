"""Adaptive attacks: the shadows of a defended model run the same defence."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from reticent.attacks.lira import lira_online
from reticent.attacks.metrics import Scores, auc
from reticent.attacks.shadows import train_shadows
from reticent.attacks.signals import Signals, confidence, paired_design
from reticent.attacks.thresholds import each_round
from reticent.attacks.whitebox import logits_of
from reticent.defences import defend

RECORDS, MODELS = 300, 4
Pair = tuple[torch.Tensor, torch.Tensor]


def make_model() -> nn.Module:
    return nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 3))


@pytest.fixture(scope="module")
def data() -> Pair:
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(RECORDS, 16, generator=rng)
    noisy = torch.randint(0, 3, (RECORDS,), generator=rng)
    truth = (x @ torch.randn(16, 3, generator=rng)).argmax(1)
    return x, torch.where(torch.rand(RECORDS, generator=rng) < 0.4, noisy, truth)


def adaptive_auc(data: Pair, name: str, **settings: object) -> float:
    """Every model is defended alike; each is the target once, with the others as its shadows."""
    x, y = data
    keep = paired_design(MODELS, RECORDS, seed=0)

    def train(number: int) -> np.ndarray:
        rows = torch.from_numpy(np.flatnonzero(keep[number]))
        return logits_of(defend(name, make_model, (x[rows], y[rows]), seed=number, **settings).model, x)

    phi = np.stack([confidence(logits, y.numpy()) for logits in train_shadows(train, MODELS)])
    matrix = each_round(Signals.of(phi, keep), partial(lira_online, variance="global"))
    return auc(Scores.of(matrix, keep))


def test_a_defence_that_is_switched_off_is_broken(data: Pair) -> None:
    assert adaptive_auc(data, "advreg", penalty=0.0, epochs=30, lr=0.2) > 0.6


@pytest.mark.slow
def test_selena_leaks_less_than_no_defence_even_to_an_adaptive_attacker(
    data: tuple[torch.Tensor, torch.Tensor],
) -> None:
    nothing = adaptive_auc(data, "advreg", penalty=0.0, epochs=60, lr=0.1)
    assert adaptive_auc(data, "selena", K=8, L=3, epochs=60, lr=0.1) < nothing
