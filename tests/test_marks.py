"""What a model carries along: weights that cost something say so, wherever they are used again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import reticent as rt
from reticent.errors import DataError, ModelError, SettingError

X = torch.rand(400, 4, generator=torch.Generator().manual_seed(0))
Y = torch.randint(0, 2, (400,), generator=torch.Generator().manual_seed(1))
TRAINED_ALREADY = "a private run has trained this model already"
SHORT: dict[str, Any] = {"epochs": 1, "batch_size": 100}


def fit(model: nn.Module, examples: Any = (X, Y), epsilon: float = 1.0, **more: Any) -> rt.Trained:
    return rt.fit(model, examples, epsilon=epsilon, delta=1e-5, lr=0.1, seed=0, **SHORT, **more)


def test_a_tuned_model_knows_what_it_cost() -> None:
    examples, judges = (X[:300], Y[:300]), (X[300:], Y[300:])
    found = rt.tune(lambda: nn.Linear(4, 2), examples, judges=judges, epsilon=4.0, trials=2, seed=0, **SHORT)
    with pytest.raises(SettingError, match=TRAINED_ALREADY):
        fit(found.trained.model)
    with pytest.raises(SettingError, match="go with a method's name"):
        rt.tune(lambda: nn.Linear(4, 2), examples, judges=judges, epsilon=4.0, method=rt.methods.dpsgd(), banana=3)


def test_what_came_of_an_earlier_run_does_not_speak_for_a_later_one(tmp_path: Path) -> None:
    model = nn.Linear(4, 2)
    first = fit(model)
    second = fit(model, epsilon=3.0, initial=first)
    with pytest.raises(SettingError, match="another run has trained this model since"):
        first.save(tmp_path / "first")
    second.save(tmp_path / "second")
    assert rt.verify(tmp_path / "second").ok


def test_a_frozen_body_is_not_new(tmp_path: Path) -> None:
    fit(nn.Linear(4, 2)).save(tmp_path)
    body = nn.Linear(4, 2).requires_grad_(False)
    rt.load(tmp_path, body)
    with pytest.raises(SettingError, match=TRAINED_ALREADY):
        fit(nn.Sequential(body, nn.Linear(2, 2)))


def test_released_statistics_are_not_new() -> None:
    normalised = fit(nn.Linear(4, 2), rt.normalise((X, Y), budget_share=0.5), epsilon=2.0).model
    assert isinstance(normalised, nn.Sequential)
    with pytest.raises(SettingError, match=TRAINED_ALREADY):
        fit(nn.Sequential(normalised[0], nn.Linear(4, 2)))


def test_a_dataset_says_nothing_of_weights_that_were_charged_elsewhere(tmp_path: Path) -> None:
    patients = rt.DatasetLedger(str(tmp_path / "ledger.sqlite")).create("patients", epsilon=9.0, delta=1e-5)
    model, said = nn.Linear(4, 2), {"delta": 1e-5, "lr": 0.1, "size": 400, **SHORT}
    first = rt.fit(model, (X, Y), epsilon=1.0, **said)
    both = rt.fit(model, (X, Y), epsilon=3.0, initial=first, dataset=patients, **said)
    assert not any("all that is charged to the dataset" in line for line in both.guarantee.covers)
    alone = rt.fit(nn.Linear(4, 2), (X, Y), epsilon=1.0, dataset=patients, **said)
    assert any("all that is charged to the dataset" in line for line in alone.guarantee.covers)


class Logs(nn.Module):
    """A loss that keeps what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Tensor] = []

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        """The loss of each, and a note of it."""
        self.seen.append(output.detach())
        return cross_entropy(output, target, reduction="none")


@pytest.mark.parametrize("groups", [None, list(range(400))])
def test_a_loss_of_outputs_and_targets_keeps_nothing(groups: list[int] | None) -> None:
    loss = Logs()
    with pytest.raises(ModelError, match="keeps something of the examples"):
        fit(nn.Linear(4, 2), loss=loss, groups=groups)
    with pytest.raises(ModelError, match="keeps something of the examples"):
        fit(nn.Linear(4, 2), loss=lambda model, batch: loss(model(batch[0]), batch[1]), groups=groups)


def test_rows_that_belong_to_nobody_are_refused() -> None:
    for groups in (["a", float("nan")] * 200, np.array(["2026-11-16", "NaT"] * 200, "datetime64[D]")):
        with pytest.raises(DataError, match="does not say of every row whose it is"):
            fit(nn.Linear(4, 2), groups=groups)
