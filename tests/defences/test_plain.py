"""Plain training: batches, settings, and that stacking models changes nothing but the speed."""

from __future__ import annotations

import copy
from itertools import islice

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from reticent.data import Examples
from reticent.defences.chains import is_chain, small_steps
from reticent.defences.plain import Plain, batches, fit, known_chance, seeds
from reticent.defences.together import fit_stacked, fit_together
from reticent.errors import SettingError
from reticent.models import build


def nothing(_updates: int) -> None:
    pass


@settings(max_examples=30, deadline=None)
@given(size=st.integers(1, 40), batch_size=st.integers(1, 60), epochs=st.integers(1, 4))
def test_whole_passes_see_each_row_equally_often(size, batch_size, epochs):
    drawn = islice(batches(torch.arange(size) + 5, batch_size, seed=size), size)  # `batch_size` whole passes
    counts = torch.cat(list(drawn)).bincount(minlength=size + 5)
    assert counts.tolist() == [0] * 5 + [batch_size] * size


def test_batches_never_hold_other_rows():
    own = torch.tensor([3, 8, 9])
    drawn = torch.cat(list(islice(batches(own, 2, seed=0), 50)))
    assert set(drawn.tolist()) == {3, 8, 9}


def four_models(points: Examples, make) -> tuple[list[nn.Module], list[torch.Tensor]]:
    with known_chance(3):
        nets = [make() for _ in range(4)]
    return nets, [torch.arange(len(points))[i::3] for i in range(4)]


@pytest.mark.parametrize("momentum", [None, 0.9])
def test_stacked_models_are_those_trained_one_after_another(points, momentum):
    nets, rows = four_models(points, lambda: build("mlp", inputs=(4,), classes=2))
    plain, keys = Plain(batch_size=16, lr=0.01, momentum=momentum), seeds(0, 4)
    alone = copy.deepcopy(nets)
    fit_stacked(nets, *points, rows, plain, rounds=25, seeds=keys, tell=nothing)
    for model, own, seed in zip(alone, rows, keys, strict=True):
        fit(model, *points, own, plain, rounds=25, seed=seed, tell=nothing)
    for one, other in zip(nets, alone, strict=True):
        for a, b in zip(one.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_a_frozen_layer_stays_as_it_is_when_stacked(points):
    def make():
        model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
        model[0].requires_grad_(False)
        return model

    nets, rows = four_models(points, make)
    before = copy.deepcopy(nets)
    fit_stacked(nets, *points, rows, Plain(batch_size=16), rounds=3, seeds=[1, 2, 3, 4], tell=nothing)
    assert all(torch.equal(a[0].weight, b[0].weight) for a, b in zip(nets, before, strict=True))
    assert not any(torch.equal(a[2].weight, b[2].weight) for a, b in zip(nets, before, strict=True))


class Own(nn.Module):
    """A module whose forward nobody knows in advance."""

    def forward(self, x):
        return x if float(x.sum()) > 0 else -x  # cannot be vmapped


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (build("mlp", inputs=(4,), classes=2), True),
        (build("linear", inputs=(4,), classes=2), True),
        (nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)), False),
        (nn.Sequential(nn.Conv1d(1, 1, 1)), False),
        (nn.Sequential(Own(), nn.Linear(4, 2)), False),
    ],
    ids=["mlp", "linear", "running statistics", "convolution", "unknown function"],
)
def test_only_what_is_known_to_gain_is_stacked(model, expected):
    assert is_chain(model) is expected


def test_what_cannot_be_stacked_is_trained_in_turns(points):
    nets, rows = four_models(points, lambda: nn.Sequential(Own(), nn.Linear(4, 2)))
    told: list[int] = []
    fit_together(nets, *points, rows, Plain(batch_size=16), rounds=2, seeds=[1, 2, 3, 4], tell=told.append)
    assert told == [1] * 8


@pytest.mark.parametrize(
    ("model", "inside"),
    [(nn.Linear(4, 2), 1), (nn.Linear(5000, 5000), 3), (nn.Sequential(nn.Conv1d(1, 1, 1)), 3)],
    ids=["small chain", "large chain", "convolution"],
)
def test_small_steps_run_on_one_thread_and_the_number_is_put_back(model, inside):
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with small_steps([model], batch_size=10):
            assert torch.get_num_threads() == inside
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_dropout_is_repeatable_and_the_global_generator_is_left_alone(points):
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2))
    results = []
    for noise in (1, 2):
        net = copy.deepcopy(model)
        torch.manual_seed(noise)
        before = torch.get_rng_state()
        fit(net, *points, torch.arange(200), Plain(batch_size=16), rounds=5, seed=0, tell=nothing)
        assert torch.equal(before, torch.get_rng_state())
        results.append(net[0].weight)
    assert torch.equal(*results)


def test_a_whole_number_may_be_written_as_a_float():
    assert Plain(batch_size=64.0).within(1000) == Plain(batch_size=64)


@pytest.mark.parametrize(
    "setting",
    [{"epochs": 0}, {"batch_size": 0}, {"batch_size": 2.5}, {"lr": -1.0}, {"lr": float("inf")}, {"momentum": 1.0}],
    ids=str,
)
def test_impossible_settings_are_refused(setting):
    with pytest.raises(SettingError, match=next(iter(setting))):
        Plain(**setting)
