"""The second look: what depends on others is found on a real micro-batch, and nothing else comes out."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence

from reticent.errors import ModelError
from reticent.gradients import gradients_are_own, losses_are_own, must_not_be_released, norms
from reticent.gradients.following import indexing


class SortedReader(nn.Module):
    """Sorts, packs, reads and puts back."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.read, self.out = nn.GRU(3, 4, batch_first=True), nn.Linear(4, 1)

    def forward(self, x, lengths):
        order = lengths.argsort(descending=True)
        packed = pack_padded_sequence(x[order], lengths[order], batch_first=True)
        return self.out(self.read(packed)[1][0][order.argsort()])


def read(model, batch):
    return model(*batch)[:, 0]


BATCH = torch.randn(6, 5, 3), torch.tensor([1, 3, 5, 2, 4, 1])
HALF = torch.tensor([True, True, False, False, True, False])


@pytest.mark.parametrize("limit", [None, 4, 1])
def test_a_clean_model_raises_no_alarm(limit):
    assert gradients_are_own(SortedReader(), read, BATCH, HALF, max_physical_batch_size=limit)


def test_gradients_that_went_to_others_are_found(monkeypatch):
    monkeypatch.setattr(indexing, "reordered", lambda *_: None)
    model = SortedReader()
    norms(model, read, BATCH)
    assert not gradients_are_own(model, read, BATCH, HALF)


def test_examples_without_a_finite_gradient_raise_no_alarm():
    def loss(model, x):
        return model(x).sum(1) * torch.tensor([1.0, float("inf"), 1.0, float("nan"), 1.0, 1.0])[: len(x)]

    assert gradients_are_own(nn.Linear(3, 1), loss, torch.randn(6, 3), HALF)


def batch_norm(x):
    return (x - x.mean(0)) / (x.std(0) + 1) if len(x) > 8 else x


def token_mean(model, batch):
    """As large libraries have it: divided by the number of tokens that count in the whole batch."""
    logits, labels = model(batch[0]), batch[1]
    losses = functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none", ignore_index=-100)
    return losses.view(labels.shape).sum(1) / (labels != -100).sum()


LABELS = torch.randint(5, (12, 6))
LABELS[4:, 3:] = -100
MIXING = {
    "divided by the batch": (lambda m, x: m(x).sum(1) / len(x), torch.randn(12, 3)),
    "hardest": (lambda m, x: (y := m(x).sum(1)) * (y >= y.topk(min(4, len(y))).values[-1]), torch.randn(12, 3)),
    "batch norm in large batches": (lambda m, x: batch_norm(m(x)).sum(1), torch.randn(12, 3)),
    "mean over tokens": (token_mean, (torch.randn(12, 6, 3), LABELS)),
}


@pytest.mark.parametrize("name", MIXING)
def test_losses_that_depend_on_others_are_found_on_real_rows(name):
    loss, batch = MIXING[name]
    assert not losses_are_own(nn.Linear(3, 5), loss, batch, torch.arange(12))


QUIET = {
    "dropout": nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 2)),
    "functional dropout": nn.TransformerEncoderLayer(3, 1, 8, batch_first=True),
    "recurrent dropout": nn.LSTM(3, 4, 2, dropout=0.5, batch_first=True),
    "noise of its own": nn.Sequential(nn.Linear(3, 2), nn.RReLU()),
}


@pytest.mark.parametrize("name", QUIET)
def test_chance_raises_no_alarm_and_is_left_as_it_was(name):
    model = QUIET[name]
    before, rng = copy.deepcopy(model.state_dict()), torch.get_rng_state()

    def loss(model, x):
        out = model(x)
        return (out[0] if isinstance(out, tuple) else out).flatten(1).exp().sum(1)  # what is normalised adds up to 0

    assert losses_are_own(
        model, loss, torch.randn(7, 4, 3, generator=torch.Generator().manual_seed(0)), torch.arange(3)
    )
    assert torch.equal(rng, torch.get_rng_state())
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())


def test_the_error_tells_nothing_of_the_data():
    error = must_not_be_released()
    assert isinstance(error, ModelError)
    assert "must not be released" in str(error)
    assert not any(character.isdigit() for character in str(error))
