"""Without a loss, types and shapes choose one: never the values of the examples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import reticent as rt

X = torch.randn(60, 4)


@pytest.mark.parametrize(
    ("y", "outputs", "name"),
    [
        (torch.arange(60) % 2, 2, "cross_entropy"),
        ((torch.arange(60) % 2).int(), 3, "cross_entropy"),
        ((torch.arange(60) % 2).to(torch.uint8), 3, "cross_entropy"),
        ((torch.arange(60) % 2)[:, None], 3, "cross_entropy"),
        (torch.arange(60) % 2 == 0, 2, "cross_entropy"),
        (torch.arange(60) % 2 == 0, 1, "bce"),
        (torch.rand(60, 3) > 0.5, 3, "bce"),
        (torch.randn(60), 1, "mse"),
        (torch.randn(60).double().numpy(), 1, "mse"),
        (torch.randn(60, 1), 1, "mse"),
        (torch.randn(60, 3), 3, "mse"),
    ],
)
def test_the_choice_is_said(y: Any, outputs: int, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    settings: dict[str, Any] = {"epochs": 1, "batch_size": 20, "noise_multiplier": 1.0, "seed": 0}
    trained = rt.fit(nn.Linear(4, outputs), (X, y), **settings)
    assert trained.about["loss"]["name"] == name
    assert f"no loss was given: {name}, since" in capsys.readouterr().err
    rt.fit(nn.Linear(4, outputs), (X, y), loss=name, **settings)
    assert capsys.readouterr().err == ""


def test_values_do_not_choose() -> None:
    """Two datasets that differ in every value are given the same loss: a choice by values would tell of them."""

    def chosen(y: Tensor) -> str:
        model = nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        method = rt.methods.dpsgd(noise_multiplier=1.0)
        run = rt.Run(model, optimizer, (X * len(y.unique()), y), method=method, batch_size=20, rounds=1)
        return run.loss.name  # type: ignore[no-any-return, attr-defined]

    assert {chosen(y) for y in (torch.zeros(60).long(), torch.arange(60), -torch.arange(60))} == {"cross_entropy"}


def test_a_dataset_in_python_numbers() -> None:
    rows = [(np.ones(4), float(i)) for i in range(60)]
    assert rt.fit(nn.Linear(4, 1), rows, epsilon=3.0, epochs=1).about["loss"]["name"] == "mse"
