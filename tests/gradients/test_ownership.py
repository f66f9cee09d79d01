"""Gradients go to the right examples whatever a model does with its rows, in every batch and not just in the first."""

from __future__ import annotations

import pytest
import torch
from gradient_oracle import clip, error, loop, loss_of
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from reticent.gradients import norms_and_sum, planning


class SortedLstm(nn.Module):
    """Sorts by length, packs, reads, and puts the examples back: a clean function of each example."""

    def __init__(self, how):
        super().__init__()
        torch.manual_seed(0)
        self.words, self.lstm, self.out = nn.Embedding(9, 4), nn.LSTM(4, 5, batch_first=True), nn.Linear(5, 2)
        self.how = how

    def forward(self, tokens, lengths):
        order = lengths.argsort(descending=True, stable=True)
        back = order.argsort()
        if self.how == "index_select":
            tokens, lengths = tokens.index_select(0, order), lengths.index_select(0, order)
        else:
            tokens, lengths = tokens[order], lengths[order]
        words = self.words(tokens)
        packed = pack_padded_sequence(words, lengths.cpu(), batch_first=True, enforce_sorted=True)
        out, (last, _) = self.lstm(packed)
        if self.how == "outputs":
            out, _ = pad_packed_sequence(out, batch_first=True, total_length=tokens.shape[1])
            return self.out(out[back].mean(1))
        return self.out(last[-1][back])


class ByBatchSize(nn.Module):
    """Puts time first in large batches, as code that was written for speed does."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x):
        if len(x) > 5:
            rows = x.transpose(0, 1).flatten(0, 1)
            y = self.one(rows).tanh().unflatten(0, (x.shape[1], len(x))).transpose(0, 1)
        else:
            y = self.one(x.flatten(0, 1)).tanh().unflatten(0, (len(x), x.shape[1]))
        return self.two(y.mean(1))


class Unpadded(nn.Module):
    """Works on the tokens of all examples in one list, as fast attention does."""

    def __init__(self):
        super().__init__()
        self.words, self.inner, self.out = nn.Embedding(9, 4), nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, tokens, lengths):
        mask = torch.arange(tokens.shape[1]) < lengths[:, None]
        rows = self.inner(self.words(tokens)[mask]).tanh()
        padded = torch.zeros(*tokens.shape, 4, dtype=rows.dtype)
        padded[mask] = rows
        return self.out(padded.sum(1))


class SortedByValue(nn.Module):
    """Sorts its rows by a value of theirs, works on them, and puts them back."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x):
        order = x[:, 0].argsort()
        return self.two(self.one(x[order]).tanh()[order.argsort()])


class Branching(nn.Module):
    """Turns its rows round if a value says so."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x):
        if x.sum() > 0:
            return self.two(self.one(x.flip(0)).tanh().flip(0))
        return self.two(self.one(x).tanh())


def words(lengths):
    return torch.randint(9, (len(lengths), 6)), torch.tensor(lengths)


SORTED, MIXED, FULL = [6, 5, 3, 2, 1, 1, 1], [1, 6, 2, 5, 3, 4, 1], [6, 6, 6, 2, 5, 1, 3]
MODELS = {
    "sorted LSTM": (lambda: SortedLstm("states"), [words(SORTED), words(MIXED), words(SORTED[::-1])]),
    "sorted LSTM, outputs": (lambda: SortedLstm("outputs"), [words(SORTED), words(MIXED)]),
    "sorted LSTM, by index_select": (lambda: SortedLstm("index_select"), [words(SORTED), words(MIXED)]),
    "layout by batch size": (ByBatchSize, [torch.randn(3, 6, 4), torch.randn(9, 6, 4), torch.randn(6, 6, 4)]),
    "unpadded": (Unpadded, [words(FULL), words(MIXED)]),
    "sorted by value": (SortedByValue, [torch.randn(6, 4).sort(0).values, torch.randn(6, 4)]),
    "branch on data": (Branching, [torch.rand(5, 4) - 2, torch.rand(5, 4), torch.randn(5, 4)]),
}


@pytest.mark.parametrize("limit", [None, 4])
@pytest.mark.parametrize("name", MODELS)
def test_every_batch_is_exact_whatever_the_first_one_looked_like(name, limit):
    build, batches = MODELS[name]
    model = build().double()
    for batch in batches:
        batch = batch.double() if isinstance(batch, torch.Tensor) else batch
        found = norms_and_sum(model, loss_of, batch, clip, max_physical_batch_size=limit)
        assert error(found, loop(model, loss_of, batch)) < 1e-9


@pytest.mark.parametrize("name", MODELS)
def test_one_example_moves_the_sum_by_no_more_than_the_bound(name):
    build, batches = MODELS[name]
    model = build()
    for batch in batches:
        parts = batch if isinstance(batch, tuple) else (batch,)
        whole = norms_and_sum(model, loss_of, batch, clip)[1]
        for i in range(len(parts[0])):
            others = tuple(torch.cat([part[:i], part[i + 1 :]]) for part in parts)
            without = norms_and_sum(model, loss_of, others if len(others) > 1 else others[0], clip)[1]
            assert torch.sqrt(sum((whole[key] - without[key]).square().sum() for key in whole)) <= 0.5 * 1.0001


def test_the_path_taken_depends_on_no_example():
    """Planning sees made-up rows only, so that sorted examples do not make a plan that others would not."""
    plans = []
    for lengths in (SORTED, MIXED):
        model = SortedLstm("states")
        norms_and_sum(model, loss_of, words(lengths), clip)
        [entry] = planning._plans[model].values()
        plans.append(None if entry.plan is None else entry.plan.proved)
    assert plans[0] == plans[1]


def test_a_gradient_written_by_hand_takes_the_general_path(caplog):
    class Rolled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, gradient):
            return gradient.roll(1, 0)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 2)

        def forward(self, x):
            return self.two(Rolled.apply(self.one(x)))

    norms_and_sum(Model(), loss_of, torch.randn(5, 4), clip)
    assert "written by hand" in caplog.text


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:.*torch.jit.*")
def test_what_compiled_code_made_takes_the_general_path(caplog):
    class Scripted(nn.Module):
        def __init__(self):
            super().__init__()
            self.flip, self.one = torch.jit.trace(lambda x: x.flip(0), torch.zeros(2, 4)), nn.Linear(4, 2)

        def forward(self, x):
            return self.one(self.flip(self.flip(x)))

    norms_and_sum(Scripted(), loss_of, torch.randn(5, 4), clip)
    assert "general path" in caplog.text
