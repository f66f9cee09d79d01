"""A pass that looks like the one before it, and has its examples elsewhere: each is followed anew."""

from __future__ import annotations

import pytest
import torch
from gradient_oracle import clip, error, loop, loss_of
from torch import nn
from torch.nn import functional

from reticent.gradients import norms_and_sum

N = 5  # examples, positions and features: no axis is told from another by its size


class Turns(nn.Module):
    """Goes another way in every call, through tensors of the same sizes."""

    def __init__(self, *ways):
        super().__init__()
        torch.manual_seed(0)
        self.one, self.two, self.norm = nn.Linear(N, N), nn.Linear(N, N), nn.LayerNorm(N)
        self.register_buffer("room", torch.zeros(N, N, N))
        self.register_buffer("orders", torch.tensor([[4, 2, 0, 1, 3], [1, 0, 4, 3, 2]]))
        self.ways, self.way = ways, 0

    def forward(self, x):
        return self.two(self.ways[self.way](self, x)).mean(1)


def as_it_is(m, x):
    return m.norm(m.one(x)).tanh()


def turned(m, x):
    return m.norm(m.one(x.transpose(0, 1))).tanh().transpose(1, 0)


def turned_by_name(m, x):
    return m.one(x.transpose(dim0=-2, dim1=-3)).swapaxes(axis0=1, axis1=0)


def features_turned(m, x):
    return m.one(x.mT).swapdims(-1, -2).transpose(1, 1)


def in_another_order(m, x):
    order = m.orders[m.way % 2] if len(x) == N else torch.arange(len(x)).flip(0)
    return m.one(x[order])[order.argsort()]


def sorted_by_value(m, x):
    order = x[:, 0, m.way].argsort()
    return m.one(x[order]).tanh()[order.argsort()]


def in_place(m, x):
    return m.one(x).mul_(x).add_(1).relu_()


def changed_through_a_view(m, x):
    y = m.one(x)
    y.transpose(0, 1)[0].mul_(2)
    return y


def in_a_buffer(m, x):
    view = m.room[: len(x)].transpose(0, 1)
    m.room[: len(x)].copy_(x)
    return m.one(view.transpose(0, 1)).tanh()


def in_a_turned_buffer(m, x):
    room = torch.zeros(x.shape[1], len(x), N, dtype=x.dtype)
    room.transpose(0, 1).copy_(x)
    return m.one(room).tanh().transpose(0, 1)


def rows_of_all(m, x):
    return m.one(x.reshape(-1, N)).tanh().view(len(x), -1, N)


def rows_of_all_turned(m, x):
    return m.one(x.transpose(0, 1).reshape(-1, N)).tanh().view(-1, len(x), N).transpose(0, 1)


def with_a_slope_of_its_own(m, x):
    return functional.leaky_relu(m.one(x), 0.25) + functional.dropout(x, 0.5, training=False)


def by_the_largest_of_all(m, x):
    return m.one(x / x.abs().max()) if m.way == 1 else m.one(x)


WAYS = [
    turned, turned_by_name, features_turned, in_another_order, sorted_by_value, in_place,
    changed_through_a_view, in_a_buffer, in_a_turned_buffer, rows_of_all, rows_of_all_turned, with_a_slope_of_its_own,
]  # fmt: skip


@pytest.mark.parametrize("n", [N, 1, 3])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_another_way_through_the_same_sizes_is_exact(way, n):
    model = Turns(as_it_is, way, as_it_is, way, turned).double()
    for i in range(5):
        model.way, x = i, torch.randn(n, N, N, dtype=torch.float64)
        found = norms_and_sum(model, loss_of, x, clip)
        model.room.zero_()
        assert error(found, loop(model, loss_of, x)) < 1e-9


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_ways_in_micro_batches_are_exact(way):
    model = Turns(as_it_is, way).double()
    for i in range(2):
        model.way, x = i, torch.randn(2 * N + 1, N, N, dtype=torch.float64)
        assert error(norms_and_sum(model, loss_of, x, clip, max_physical_batch_size=N), loop(model, loss_of, x)) < 1e-9


def test_a_way_that_mixes_examples_is_never_taken_for_one_that_does_not():
    model = Turns(as_it_is, by_the_largest_of_all, as_it_is).double()
    x = torch.randn(N, N, N, dtype=torch.float64)
    for model.way in range(3):  # each example alone, where all of them together decide
        assert error(norms_and_sum(model, loss_of, x, clip), loop(model, loss_of, x)) < 1e-9
