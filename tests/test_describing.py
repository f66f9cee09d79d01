"""Resume compares all that changes what is asked: schedules, lambdas, closures, groups of parameters."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Optimizer
from torch.optim.lr_scheduler import ChainedScheduler, LambdaLR, LRScheduler, MultiStepLR, SequentialLR, StepLR

import reticent as rt
from reticent.describing import described, optimized, scheduled
from reticent.errors import ResumeError
from reticent.losses import cross_entropy

Schedule = Callable[[Optimizer], LRScheduler]
HALVED, PLAIN = partial(StepLR, step_size=2, gamma=0.5), partial(SGD, lr=0.1)


def weighted(by: float) -> Callable[[nn.Module, Any], Tensor]:
    return lambda model, batch: by * cross_entropy(model, batch)


def bare(model: nn.Module, batch: Any, power: float = 1.0) -> Tensor:
    return cross_entropy(model, batch) ** power


def pair(output: Tensor, target: Tensor, power: float = 1.0) -> Tensor:
    return nn.functional.cross_entropy(output, target, reduction="none") ** power


def a_run(
    folder: Path,
    loss: Any = cross_entropy,
    schedule: Schedule = HALVED,
    optimizer: Callable[[Any], Optimizer] = PLAIN,
) -> rt.Run:
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    made = optimizer(model.parameters())
    examples = torch.randn(50, 3), torch.randint(0, 2, (50,))
    settings: dict[str, Any] = {"method": rt.methods.dpsgd(noise_multiplier=1.0), "batch_size": 10, "rounds": 3}
    return rt.Run(model, made, examples, loss=loss, scheduler=schedule(made), folder=folder, resume=True, **settings)


def lambdas(rate: float) -> Schedule:
    return lambda optimizer: LambdaLR(optimizer, lambda step: rate**step)


CHANGES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("scheduler", {}, {"schedule": partial(StepLR, step_size=2, gamma=0.4)}),
    ("scheduler", {}, {"schedule": partial(StepLR, step_size=3, gamma=0.5)}),
    ("scheduler", {"schedule": lambdas(0.9)}, {"schedule": lambdas(0.8)}),
    (
        "scheduler",
        {"schedule": lambda optimizer: LambdaLR(optimizer, lambda step: 0.9**step)},
        {"schedule": lambda optimizer: LambdaLR(optimizer, lambda step: 0.8**step)},
    ),
    ("loss", {"loss": weighted(0.5)}, {"loss": weighted(0.6)}),
    ("loss", {"loss": partial(bare, power=1.0)}, {"loss": partial(bare, power=2.0)}),
    ("loss", {"loss": None}, {"loss": "multi_margin"}),
    ("loss", {"loss": nn.CrossEntropyLoss()}, {"loss": nn.CrossEntropyLoss(label_smoothing=0.1)}),
    ("loss", {"loss": nn.CrossEntropyLoss()}, {"loss": nn.CrossEntropyLoss(weight=torch.ones(2))}),
    (
        "loss",
        {"loss": nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0]))},
        {"loss": nn.CrossEntropyLoss(weight=torch.tensor([2.0, 1.0]))},
    ),
    ("loss", {"loss": partial(pair, power=1.0)}, {"loss": partial(pair, power=2.0)}),
    ("optimizer settings", {}, {"optimizer": partial(SGD, lr=0.2)}),
]


@pytest.mark.parametrize(("says", "first", "second"), CHANGES)
def test_another_one_is_refused_by_name(
    tmp_path: Path, says: str, first: dict[str, Any], second: dict[str, Any]
) -> None:
    a_run(tmp_path, **first).step()
    with pytest.raises(ResumeError, match=f"the stored run has {says} = "):
        a_run(tmp_path, **second)
    a_run(tmp_path, **first).step()  # the same one goes on


def grouped(rates: tuple[float, float]) -> Callable[[Any], Optimizer]:
    def make(parameters: Any) -> Optimizer:
        weight, bias = parameters
        return SGD([{"params": [weight], "lr": rates[0]}, {"params": [bias]}], lr=rates[1])

    return make


def test_another_rate_of_one_group_is_refused(tmp_path: Path) -> None:
    a_run(tmp_path, optimizer=grouped((0.3, 0.1))).step()
    with pytest.raises(ResumeError, match="optimizer settings"):
        a_run(tmp_path, optimizer=grouped((0.2, 0.1)))
    a_run(tmp_path, optimizer=grouped((0.3, 0.1))).step()


class Focal:
    """A loss with a number of its own."""

    def __init__(self, power: float):
        self.power = power

    def __call__(self, model: nn.Module, batch: Any) -> Tensor:
        return cross_entropy(model, batch) ** self.power

    def method(self, model: nn.Module, batch: Any) -> Tensor:
        return self(model, batch)


def with_table(table: Any) -> Callable[[int], Any]:
    return lambda row: table[row]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (Focal(1.0), Focal(2.0)),
        (Focal(1.0).method, Focal(2.0).method),
        (with_table(torch.ones(3)), with_table(torch.zeros(3))),
        (with_table(np.ones(3)), with_table(np.zeros(3))),
        (with_table([1, {"a": 2}]), with_table([1, {"a": 3}])),
        (with_table(weighted(1)), with_table(weighted(2))),
        (lambda x: x.relu(), lambda x: x.tanh()),
        (lambda x: [y + 1 for y in x], lambda x: [y + 2 for y in x]),
        (torch.sin, torch.cos),
        (nn.HuberLoss(delta=1.0), nn.HuberLoss(delta=2.0)),
        (nn.MSELoss(), nn.MSELoss(reduction="sum")),
        (nn.MSELoss(), nn.L1Loss()),
        (nn.BCEWithLogitsLoss(pos_weight=torch.ones(1)), nn.BCEWithLogitsLoss(pos_weight=torch.zeros(1))),
        (nn.Linear(2, 1).requires_grad_(False), nn.Linear(2, 1).requires_grad_(False)),
        (np.sin, np.cos),
    ],
)
def test_different_things_are_described_differently(one: Any, two: Any) -> None:
    assert described(one) == described(one)
    assert described(one) != described(two)


SCALE = 2.0


def by_a_global(x: float) -> float:
    return SCALE * x


def test_a_number_of_the_module_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    before = described(by_a_global)
    monkeypatch.setitem(by_a_global.__globals__, "SCALE", 3.0)
    assert described(by_a_global) != before


def test_schedulers_inside_schedulers_count_and_using_them_does_not() -> None:
    def made(gamma: float, kind: str) -> LRScheduler:
        optimizer = SGD([nn.Parameter(torch.zeros(1))], lr=0.1)
        parts = [StepLR(optimizer, 2, gamma), MultiStepLR(optimizer, [1, 3])]
        return SequentialLR(optimizer, parts, [2]) if kind == "sequence" else ChainedScheduler(parts)  # type: ignore[arg-type, return-value]

    for kind in ("sequence", "chain"):
        assert scheduled(made(0.5, kind)) == scheduled(made(0.5, kind)) != scheduled(made(0.4, kind))
    one = StepLR(SGD([nn.Parameter(torch.zeros(1))], lr=0.1), 2)
    before = scheduled(one)
    one.optimizer.step()
    one.step()
    assert scheduled(one) == before


def test_learned_tensors_are_described_by_their_shape() -> None:
    model = nn.Linear(2, 1)
    optimizer = SGD(model.parameters(), lr=0.1)
    closing = with_table(model)
    before = described(closing), optimized(optimizer)
    nn.init.ones_(model.weight)
    assert (described(closing), optimized(optimizer)) == before


ACROSS = """
from torch import nn
from reticent.describing import described
print([*{"a", "bb", "ccc"}])
print([*frozenset(("a", "bb", "ccc", "dddd"))])
print(described([lambda x: x in {"a", "bb", "ccc", "dddd"}, {"a", "bb", "ccc"}, nn.Sequential(nn.Linear(1, 1))]))
"""


def test_another_process_says_the_same() -> None:
    short, long, said = zip(
        *(
            subprocess.run(
                [sys.executable, "-c", ACROSS],
                env=os.environ | {"PYTHONHASHSEED": seed},
                capture_output=True,
                check=True,
            ).stdout.split(b"\n", 2)
            for seed in ("2", "3")
        ),
        strict=True,
    )
    assert short[0] != short[1], "sets have another order there"
    assert long[0] != long[1]
    assert said[0] == said[1]


def test_a_thing_that_holds_itself_is_described() -> None:
    table: list[Any] = []
    table.append(with_table(table))
    assert "with_table" in described(table)


def test_the_name_of_a_loss_and_the_loss_are_one(tmp_path: Path) -> None:
    """Nothing, a name, a class and a function that do the same go on from each other."""
    a_run(tmp_path, loss=None).step()
    for loss in ("cross_entropy", nn.CrossEntropyLoss(), nn.functional.cross_entropy):
        a_run(tmp_path, loss=loss)


def test_weights_that_are_learned_do_not_count() -> None:
    assert described(nn.Linear(2, 1)) == described(nn.Linear(2, 1))
    assert described(nn.Dropout(0.1)) != described(nn.Dropout(0.2))
