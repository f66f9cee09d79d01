"""One-run audits of a training: a model that learns its canaries by heart is caught, one that ignores them is not."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from reticent.audits.canaries import audit_one_run, judge_one_run, mislabelled
from reticent.audits.claims import gaussian_claim


class Parrot(nn.Module):
    """Knows the examples it was given, and nothing else."""

    def __init__(self, x: Tensor, y: Tensor):
        super().__init__()
        self.known = {tuple(row.tolist()): int(label) for row, label in zip(x, y, strict=True)}

    def forward(self, x: Tensor) -> Tensor:
        answers = torch.zeros(len(x), 3)
        for place, row in enumerate(x):
            if (label := self.known.get(tuple(row.tolist()))) is not None:
                answers[place, label] = 5.0
        return answers


@pytest.fixture
def data() -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    x, y = torch.randn(700, 2), torch.randint(0, 3, (700,))
    return (x[:200], y[:200]), mislabelled(x[200:], y[200:], 3, seed=0)


def test_a_parrot_contradicts_any_small_epsilon(data: object) -> None:
    base, canaries = data
    found = audit_one_run(lambda examples: Parrot(*examples), base, canaries, epsilon=3.0, delta=1e-5)
    assert found.contradicted
    assert found.lower > 3.0
    assert 150 < found.included < 350


def test_a_model_that_ignores_its_examples_contradicts_nothing(data: object) -> None:
    base, canaries = data
    found = audit_one_run(lambda _: nn.Linear(2, 3), base, canaries, epsilon=0.1, delta=1e-5)
    assert not found.contradicted


def test_a_true_gaussian_claim_survives_and_a_false_one_does_not(rng: np.random.Generator) -> None:
    included = rng.random(2000) < 0.5
    scores = 2.0 * included + rng.normal(size=2000)
    true = judge_one_run(scores, included, epsilon=10.0, delta=1e-5, claim=gaussian_claim(2.0))
    false = judge_one_run(scores, included, epsilon=10.0, delta=1e-5, claim=gaussian_claim(0.8))
    assert not true.contradicted
    assert false.contradicted
