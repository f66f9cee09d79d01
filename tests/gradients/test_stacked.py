"""Several models at once give what each gives by itself."""

from __future__ import annotations

import copy

import pytest
import torch
from gradient_oracle import clip, loss_of
from torch import nn

from reticent.errors import ModelError
from reticent.gradients import norms_and_sum
from reticent.gradients.stacked import Stack

MODELS, N = 3, 5


def perceptron():
    return nn.Sequential(
        nn.Linear(4, 6), nn.LayerNorm(6), nn.Tanh(), nn.Linear(6, 6), nn.GroupNorm(2, 6), nn.Linear(6, 2)
    )


def reader():
    table = nn.Embedding(7, 4, padding_idx=0)
    return nn.Sequential(table, nn.Linear(4, 4), nn.LayerNorm(4), nn.Softplus(), nn.Linear(4, 7, bias=False))


def tied():
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
    model[2].weight = model[0].weight
    return model


CASES = {
    "perceptron": (perceptron, lambda: torch.randn(MODELS, N, 4, dtype=torch.float64)),
    "reader": (reader, lambda: torch.randint(7, (MODELS, N, 3))),
    "positions": (tied, lambda: torch.randn(MODELS, N, 3, 4, dtype=torch.float64)),
}


@pytest.mark.parametrize("name", CASES)
def test_each_model_gets_what_it_would_get_alone(name):
    build, examples = CASES[name]
    alone, batches = [build().double() for _ in range(MODELS)], examples()
    expected = [norms_and_sum(copy.deepcopy(m), loss_of, x, clip) for m, x in zip(alone, batches, strict=True)]
    plain = [
        norms_and_sum(copy.deepcopy(m), loss_of, x, torch.ones_like)[1] for m, x in zip(alone, batches, strict=True)
    ]
    stack = Stack(alone)
    norms, sums = stack.norms_and_sum(loss_of, batches, clip)
    unweighted = stack.sums(loss_of, batches)
    for i in range(MODELS):
        torch.testing.assert_close(norms[i], expected[i][0])
        torch.testing.assert_close({key: value[i] for key, value in sums.items()}, expected[i][1])
        torch.testing.assert_close({key: value[i] for key, value in unweighted.items()}, plain[i])


def test_a_bad_example_touches_neither_its_own_model_nor_the_others():
    models, x = [perceptron().double() for _ in range(MODELS)], torch.randn(MODELS, N, 4, dtype=torch.float64)
    stack = Stack(models)
    scale = torch.ones(MODELS, N, dtype=torch.float64)

    def loss(model, batch):
        return loss_of(model, batch[0]) * batch[1]

    def without(norms):
        weights = clip(norms)
        weights[1, 2] = 0
        return weights

    _, expected = stack.norms_and_sum(loss, (x, scale), without)
    scale[1, 2] = float("nan")
    norms, sums = stack.norms_and_sum(loss, (x, scale), clip)
    assert not norms[1, 2].isfinite()
    torch.testing.assert_close(sums, expected)


def test_the_models_stay_usable_and_follow_the_stack():
    models = [nn.Linear(2, 1) for _ in range(MODELS)]
    before = [model.weight.clone() for model in models]
    stack = Stack(models)
    assert all(torch.equal(model.weight, weight) for model, weight in zip(models, before, strict=True))
    stack.parameters["weight"] += 1
    assert all(torch.equal(model.weight, weight + 1) for model, weight in zip(models, before, strict=True))


def test_what_cannot_be_stacked_is_refused():
    with pytest.raises(ModelError, match="conv2d of 'weight' cannot be stacked"):
        Stack([nn.Conv2d(1, 1, 2), nn.Conv2d(1, 1, 2)]).sums(loss_of, torch.randn(2, 3, 1, 4, 4))
    with pytest.raises(ModelError, match="same trainable parameters"):
        Stack([nn.Linear(2, 1), nn.Linear(3, 1)])
    with pytest.raises(ValueError, match="2 models need as many batches, got 3"):
        Stack([nn.Linear(2, 1), nn.Linear(2, 1)]).sums(loss_of, torch.randn(3, 4, 2))


def test_models_that_move_their_rows_are_refused():
    models = [nn.Sequential(nn.Linear(3, 2)) for _ in range(2)]

    def turned(model, x):
        return model(x.flip(0)).sum(1).flip(0)

    with pytest.raises(ModelError, match=r"cannot be stacked.*one by one"):
        Stack(models).norms_and_sum(turned, torch.randn(2, 4, 3), torch.ones_like)
