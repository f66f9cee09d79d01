"""Clipping by layer: each part of a gradient is cut by itself, exactly, and the whole is no longer than is charged."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import reticent as rt
from reticent.errors import SettingError
from reticent.gradients import norms_and_sum
from reticent.gradients.general import by_loop
from reticent.gradients.task import LossTask
from reticent.inside import ByLayer, CountedSum, Division, Flat, RoundSettings, Task
from reticent.inside.by_layer import division_of

Pair = tuple[Tensor, Tensor]


class Tied(nn.Module):
    """Weights that are used twice: their gradient is the sum of both uses before it is measured."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(11, 6)
        self.mix = nn.LSTM(6, 6, batch_first=True)
        self.norm = nn.LayerNorm(6)

    def forward(self, tokens: Tensor) -> Tensor:
        mixed: Tensor = self.norm(self.mix(self.words(tokens))[0].mean(1))
        return mixed @ self.words.weight.T


class Odd(nn.Module):
    """A use of a parameter that no rule knows: the general path takes it."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.matrix = nn.Linear(5, 3), nn.Parameter(torch.eye(3))

    def forward(self, x: Tensor) -> Tensor:
        return self.first(x) @ torch.linalg.matrix_exp(self.matrix)


def cases() -> dict[str, tuple[nn.Module, Tensor]]:
    torch.manual_seed(1)
    convolutional = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.Tanh(), nn.Flatten(), nn.Linear(64, 5), nn.ReLU(), nn.Linear(5, 3)
    )
    return {
        "convolutional": (convolutional, torch.randn(9, 1, 6, 6)),
        "tied": (Tied(), torch.randint(0, 11, (9, 7))),
        "general": (Odd(), torch.randn(9, 5)),
    }


def loss(model: nn.Module, batch: Any) -> Tensor:
    return nn.functional.cross_entropy(model(batch[0]), batch[1], reduction="none")


@pytest.mark.parametrize("by", ["layer", "parameter"])
@pytest.mark.parametrize("name", list(cases()))
def test_parts_are_measured_and_cut_as_if_gradients_were_written_out(name: str, by: str) -> None:
    model, x = cases()[name]
    batch = (x, torch.arange(len(x)) % 3)
    flat = Flat(model)
    division = division_of(ByLayer(by), flat)
    written = by_loop(LossTask.of(model, loss), batch)
    count, parts = len(x), len(division.shares)
    squares = torch.zeros(count, parts)
    for parameter, gradient in written.items():
        squares[:, division.part_of[parameter]] += gradient.reshape(count, -1).square().sum(1)
    limit = 0.3
    seen: list[Tensor] = []

    def weigh(found: Tensor) -> Tensor:
        seen.append(found)
        return division.weights(found, limit)

    _, sums = norms_and_sum(model, loss, batch, weigh, max_physical_batch_size=4, parts=division.part_of)
    torch.testing.assert_close(torch.cat(seen), squares.sqrt(), rtol=1e-4, atol=1e-6)
    weights = division.weights(squares.sqrt(), limit)
    assert bool((weights < 1).any())
    for parameter, gradient in written.items():
        expected = torch.tensordot(weights[:, division.part_of[parameter]], gradient, dims=1)
        torch.testing.assert_close(sums[parameter], expected, rtol=1e-4, atol=1e-6)


def test_a_gradient_is_no_longer_than_the_clip_norm_whatever_its_layers_are() -> None:
    rng = np.random.default_rng(0)
    for shares in ((1.0,), (0.6, 0.8), tuple(math.sqrt(1 / 7) for _ in range(7))):
        norms = torch.from_numpy(10 ** rng.uniform(-8, 8, size=(500, len(shares)))).float()
        division = Division({}, shares)
        cut = norms * division.weights(norms, 0.5)
        assert float(cut.double().square().sum(1).sqrt().max()) <= 0.5 * (1 + 1e-6)


def test_layers_share_by_number_or_by_size_and_groups_by_the_beginnings_of_names() -> None:
    shapes = {"body.0.weight": [8, 2], "body.0.bias": [2], "body.1.weight": [7], "head.weight": [5, 5]}
    assert ByLayer().divide(shapes).shares == pytest.approx([3**-0.5] * 3)
    assert ByLayer(by="head", share="size").divide(shapes).shares == pytest.approx([0.5**0.5] * 2)
    groups = ByLayer(by="body.1, head").divide(shapes)
    assert [groups.part_of[name] for name in shapes] == [0, 0, 1, 2]
    for by in ("layer", "parameter", "head"):
        for share in ("equal", "size"):
            shares = ByLayer(by, share).divide(shapes).shares  # type: ignore[arg-type]
            assert math.fsum(one**2 for one in shares) == pytest.approx(1.0)


def test_what_cannot_be_divided_is_refused() -> None:
    with pytest.raises(SettingError, match="no parameter begins with"):
        ByLayer(by="heads").divide({"head.weight": [2]})
    with pytest.raises(SettingError, match="share must be"):
        ByLayer(share="most")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="more than is charged"):
        Division({"a": 0, "b": 1}, (0.8, 0.8))
    model = nn.Linear(2, 1)
    settings, task = RoundSettings(10, 5, 1.0, 1.0), Task(model, loss, Flat(model))
    with pytest.raises(SettingError, match="one norm for each example"):
        CountedSum()(task, ByLayer(), settings)

    class Forgetful(ByLayer):
        def divide(self, shapes: Any) -> Division:
            return Division({"weight": 0}, (1.0,))

    with pytest.raises(SettingError, match="would not be bounded"):
        division_of(Forgetful(), task.flat)


def test_one_part_is_plain_clipping(blobs: Pair) -> None:
    ends = []
    for method in (rt.methods.dpsgd(noise_multiplier=1.0), rt.methods.get("layer_clip", noise_multiplier=1.0)):
        torch.manual_seed(0)
        net = nn.Linear(4, 2)  # one layer
        sgd = torch.optim.SGD(net.parameters(), lr=0.5)
        run = rt.Run(net, sgd, blobs, method=method, batch_size=20, rounds=4, delta=1e-5, seed=0)
        list(run)
        ends.append(net.weight.detach().clone())
    torch.testing.assert_close(*ends)


def test_persons_and_private_diagnostics_go_with_it(blobs: Pair) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))
    sgd = torch.optim.SGD(net.parameters(), lr=0.5)
    method = replace(rt.methods.get("layer_clip", noise_multiplier=1.0), max_grad_norm=1e-3)
    run = rt.Run(
        net, sgd, blobs, method=method, groups=np.arange(200) // 2, batch_size=20, rounds=4, delta=1e-5, seed=0,
        private_diagnostics=True,
    )  # fmt: skip
    list(run)
    records = run.private_diagnostics()
    assert all(0 < record["bounded"] == record["drawn"] for record in records)  # type: ignore[operator]
