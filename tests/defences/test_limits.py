"""Why SELENA claims nothing: who saw an example answers for its neighbours, and the released model passes that on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from reticent import data, models
from reticent.attacks import Scores, auc, confidence
from reticent.data import Examples
from reticent.defences.selena import selena

CANARIES = 100


def make_model() -> nn.Module:
    return models.build("mlp", inputs=(1, 8, 8), classes=10, activation="relu")


def scorer(model: nn.Module) -> Callable[[Examples], np.ndarray]:
    def score(examples: Examples) -> np.ndarray:
        with torch.no_grad():
            return confidence(model(examples.x).numpy(), examples.y.numpy())

    model.eval()
    return score


@pytest.mark.parametrize(("copies", "at_least"), [(1, 0.65), (2, 0.75)], ids=["alone", "with a near-copy"])
def test_a_mislabelled_example_shows_although_ordinary_ones_look_safe(copies, at_least):
    """Canaries as in Aerni et al. 2024: unseen digits with a wrong label, of which a random half is trained on."""
    digits, rng = data.load("digits"), torch.Generator().manual_seed(0)
    order = torch.randperm(len(digits.test), generator=rng)
    x, truth = digits.test.take(order[:CANARIES])
    wrong = (truth + torch.randint(1, 9, truth.shape, generator=rng)) % 10
    inside = torch.rand(CANARIES, generator=rng) < 0.5
    near = [x[inside] + 0.02 * torch.randn(x[inside].shape, generator=rng) for _ in range(copies)]
    examples = Examples(torch.cat([digits.train.x, *near]), torch.cat([digits.train.y, *[wrong[inside]] * copies]))

    trained = selena(make_model, examples, K=10, L=4, epochs=25, batch_size=64, lr=3e-3, seed=0)
    score = scorer(trained.model)

    canaries = auc(Scores.of(score(Examples(x, wrong)), inside.numpy()))
    control = auc(Scores.of(score(Examples(x, (truth + 9) % 10)), inside.numpy()))  # a label nobody trained on
    ordinary = auc(Scores(score(digits.train), score(digits.test.take(order[CANARIES:]))))
    print(f"\n{copies}: canaries {canaries:.3f}, control {control:.3f}, ordinary {ordinary:.3f}")
    assert canaries > at_least
    assert canaries > control + 0.1  # the label itself shows, not only that the example is strange
    assert abs(ordinary - 0.5) < 0.04
