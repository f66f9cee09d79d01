"""The exact general path: every kind of layer, odd batches, nothing left behind."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional

from reticent.errors import ModelError
from reticent.gradients import general, norms, norms_and_sum


def clip(found):
    return (1 / found).clamp(max=1)


def total(model, batch):
    out = model(batch)
    out = out[0] if isinstance(out, tuple) else out
    return out.flatten(1).square().sum(1)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(7, 4)
        self.out = nn.Linear(4, 7, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, tokens):
        return self.out(self.embed(tokens).mean(1))


class Packed(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(3, 4, batch_first=True)

    def forward(self, x):
        lengths = 1 + (x[:, 0, 0] > 0).long()
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        return self.gru(packed)[1][-1]


MODELS = {
    "linear": (nn.Linear(3, 2), torch.randn(5, 3)),
    "conv1d": (nn.Conv1d(2, 3, 3), torch.randn(5, 2, 6)),
    "conv2d": (nn.Conv2d(2, 3, 3, padding=1), torch.randn(5, 2, 5, 5)),
    "conv3d": (nn.Conv3d(2, 3, 2), torch.randn(5, 2, 3, 3, 3)),
    "groupnorm": (nn.Sequential(nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4)), torch.randn(5, 2, 5, 5)),
    "layernorm": (nn.LayerNorm(4), torch.randn(5, 3, 4)),
    "instancenorm": (nn.InstanceNorm2d(2, affine=True), torch.randn(5, 2, 4, 4)),
    "embedding": (nn.Embedding(9, 3), torch.randint(9, (5, 4))),
    "lstm": (nn.LSTM(3, 4, batch_first=True), torch.randn(5, 6, 3)),
    "gru": (nn.GRU(3, 4, batch_first=True), torch.randn(5, 6, 3)),
    "rnn": (nn.RNN(3, 4, batch_first=True, bidirectional=True), torch.randn(5, 6, 3)),
    "attention": (nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), torch.randn(5, 3, 8)),
    "tied": (Tied(), torch.randint(7, (5, 4))),
    "packed": (Packed(), torch.randn(5, 2, 3)),
}


def oracle(model, loss, batch, weigh=clip):
    model, batch = copy.deepcopy(model).double(), batch.double() if batch.is_floating_point() else batch
    return general.norms_and_sum_of(general.by_loop(model, loss, batch), weigh)


@pytest.mark.parametrize("name", MODELS)
def test_norms_and_sum_equal_a_loop_over_single_examples(name):
    model, batch = MODELS[name]
    model = copy.deepcopy(model).double()
    batch = batch.double() if batch.is_floating_point() else batch
    found, sums = norms_and_sum(model, total, batch, clip)
    expected, expected_sums = oracle(model, total, batch)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)
    assert list(sums) == [n for n, _ in model.named_parameters()]
    for key, value in expected_sums.items():
        torch.testing.assert_close(sums[key], value, rtol=1e-9, atol=1e-12)


def test_frozen_parameters_are_neither_counted_nor_returned():
    model, x = nn.Linear(3, 2), torch.randn(4, 3)
    model.bias.requires_grad_(False)
    found, sums = norms_and_sum(model, total, x, clip)
    assert list(sums) == ["weight"]
    torch.testing.assert_close(found, 2 * model(x).norm(dim=1) * x.norm(dim=1))


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_micro_batches_change_nothing_but_memory(limit):
    model, x = nn.Linear(3, 2).double(), torch.randn(7, 3, dtype=torch.float64)
    whole = norms_and_sum(model, total, x, clip)
    cut = norms_and_sum(model, total, x, clip, max_physical_batch_size=limit)
    torch.testing.assert_close(whole, cut, rtol=1e-12, atol=1e-12)


def test_an_empty_batch_gives_no_norm_and_a_zero_sum():
    model = nn.Linear(3, 2)
    found, sums = norms_and_sum(model, total, torch.empty(0, 3), clip)
    assert found.shape == (0,)
    assert all((value == 0).all() for value in sums.values())


def test_the_sum_is_added_to_the_tensors_given():
    model, x = nn.Linear(3, 2), torch.randn(4, 3)
    _, sums = norms_and_sum(model, total, x, clip)
    flat = torch.ones(8)
    into = {"weight": flat[:6].view(2, 3), "bias": flat[6:]}
    norms_and_sum(model, total, x, clip, into=into)
    torch.testing.assert_close(flat, torch.cat([sums["weight"].flatten(), sums["bias"]]) + 1)


@pytest.mark.parametrize("poison", [float("nan"), float("inf"), 1e38])
@pytest.mark.parametrize("limit", [None, 2])
def test_an_example_without_a_finite_norm_touches_no_other(poison, limit):
    model, x = nn.Sequential(nn.Linear(3, 4), nn.Softplus(), nn.Linear(4, 2)), torch.randn(6, 3)
    _, clean = norms_and_sum(model, total, torch.cat([x[:3], x[4:]]), clip)
    x[3] = poison
    found, sums = norms_and_sum(model, total, x, clip, max_physical_batch_size=limit)
    assert not found[3].isfinite()
    for key, value in clean.items():
        torch.testing.assert_close(sums[key], value)


def test_batches_may_be_nested():
    model = nn.Linear(3, 2)
    x, y = torch.randn(4, 3), torch.randint(2, (4,))

    def loss(model, batch):
        return functional.cross_entropy(model(batch["in"][0]), batch["label"], reduction="none")

    flat = norms(model, lambda m, b: functional.cross_entropy(m(b[0]), b[1], reduction="none"), (x, y))
    torch.testing.assert_close(norms(model, loss, {"in": [x], "label": y}), flat)


@pytest.mark.parametrize("loss", [lambda m, x: m(x).mean(), lambda m, x: m(x), lambda m, x: 1.0])
def test_a_loss_that_is_not_one_number_per_example_is_refused(loss):
    with pytest.raises(ModelError, match=r"one number per example.*reduction='none'"):
        norms(nn.Linear(3, 2), loss, torch.randn(4, 3))


def test_nothing_is_left_on_the_model():
    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.Linear(3, 1))
    model[2].weight.grad = torch.ones(1, 3)
    before = {id(m): set(vars(m)) for m in model.modules()}
    norms_and_sum(model, total, torch.randn(4, 3), clip)
    assert {id(m): set(vars(m)) for m in model.modules()} == before
    assert all(not m._forward_hooks and not m._backward_hooks and not m._forward_pre_hooks for m in model.modules())
    assert model.training
    assert model[0].weight.grad is None
    assert torch.equal(model[2].weight.grad, torch.ones(1, 3))


def test_random_layers_repeat_with_the_seed_whether_or_not_the_path_is_known():
    batch = torch.randn(6, 3)

    def run(model):
        torch.manual_seed(3)
        return norms(model, total, batch)

    model = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 1))
    first, again, fresh = run(model), run(model), run(copy.deepcopy(model))
    assert torch.equal(first, again)
    assert torch.equal(first, fresh)
