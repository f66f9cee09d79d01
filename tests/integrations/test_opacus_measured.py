"""Numbers measured on a batch must not get into its loss, nor costs be left out: what a loop can do by accident."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset
from typer.testing import CliRunner

import reticent as rt
from reticent.cli import app
from reticent.errors import DataError, ModelError, SettingError
from reticent.integrations.opacus import PrivacyEngine
from reticent.integrations.opacus.engine import BROUGHT

RNG = torch.Generator().manual_seed(5)
X, Y = torch.randn(60, 4, generator=RNG), torch.arange(60) % 3
Loss = Callable[[Any, Tensor, Tensor], Any]


def private(engine: PrivacyEngine, model: nn.Module, *, batch: int = 20, **settings: Any) -> tuple[Any, Any, Any]:
    said = {"noise_multiplier": 1.0, "max_grad_norm": 1.0, **settings}
    loader, sgd = DataLoader(TensorDataset(X, Y), batch_size=batch), torch.optim.SGD(model.parameters(), lr=0.1)
    return engine.make_private(module=model, optimizer=sgd, data_loader=loader, **said)


def epoch(parts: tuple[Any, Any, Any], loss: Loss) -> None:
    model, optimizer, loader = parts
    for x, y in loader:
        optimizer.zero_grad()
        loss(model, x, y).backward()
        optimizer.step()


def plain(model: Any, x: Tensor, y: Tensor) -> Tensor:
    return functional.cross_entropy(model(x), y)


class Once:
    """A weight that is measured on the first batch and kept."""

    def __init__(self, measure: Callable[[Tensor], float]):
        self.measure, self.weight = measure, 0.0

    def __call__(self, model: Any, x: Tensor, y: Tensor) -> Tensor:
        self.weight = self.weight or self.measure(y)
        return plain(model, x, y) * self.weight


def by_length(model: Any, x: Tensor, y: Tensor) -> Tensor:
    return functional.cross_entropy(model(x), y, reduction="sum") / len(x)


def by_shape(model: Any, x: Tensor, y: Tensor) -> Tensor:
    return functional.cross_entropy(model(x), y, reduction="sum") / x.shape[0]


def by_share(model: Any, x: Tensor, y: Tensor) -> Tensor:
    return functional.cross_entropy(model(x), y, reduction="sum") * (1 / x.size(0))


def by_float(model: Any, x: Tensor, y: Tensor) -> Tensor:
    return functional.cross_entropy(model(x), y, reduction="sum") / float(y.numel())


@pytest.mark.parametrize(
    "measure", [lambda y: int(y.sum()) + 2, lambda y: float(int(y.sum())) + 2, lambda y: sum(y.tolist()) / 7.3]
)
def test_a_weight_measured_on_the_first_batch_is_refused(measure: Callable[[Tensor], float]) -> None:
    engine = PrivacyEngine(accountant="rdp")
    with pytest.raises(ModelError, match="was read"):
        epoch(private(engine, nn.Linear(4, 3)), Once(measure))
    assert engine.get_epsilon(1e-3) == 0, "nothing was released"


@pytest.mark.parametrize("loss", [by_length, by_shape, by_share, by_float])
@pytest.mark.parametrize("batch", [20, 60])
def test_the_number_of_examples_drawn_is_not_part_of_a_loss(loss: Loss, batch: int) -> None:
    engine = PrivacyEngine(accountant="rdp")
    with pytest.raises(ModelError, match="number of examples drawn"):
        epoch(private(engine, nn.Linear(4, 3), batch=batch, loss_reduction="sum", size=60), loss)
    assert engine.get_epsilon(1e-3) == 0


def test_fixed_numbers_pass_where_nothing_was_read() -> None:
    def loss(model: Any, x: Tensor, y: Tensor) -> Tensor:
        return sum([plain(model, x.view(len(x), -1), y), 2 * plain(model, x, y)]) / 3  # type: ignore[return-value]

    epoch(private(PrivacyEngine(), nn.Linear(4, 3)), loss)


@pytest.mark.parametrize(
    ("loss", "says"),
    [
        (lambda m, x, y: -functional.log_softmax(m(x), 1)[torch.arange(len(y)), y].mean(), "other rows"),
        (lambda m, x, y: functional.cross_entropy(m(x), y, reduction="none").topk(3)[0].mean(), "other rows"),
        (lambda m, x, y: torch.stack([plain(m, x, y), plain(m, x, y)]).mean(), "one number of the whole batch"),
        (lambda m, x, y: torch.add(plain(m, x, y), other=plain(m, x, y)), "one number of the whole batch"),
    ],
)
def test_a_loss_that_cannot_be_taken_apart_says_what_to_do(loss: Loss, says: str) -> None:
    with pytest.raises(ModelError, match=says):
        epoch(private(PrivacyEngine(), nn.Linear(4, 3)), loss)


def test_without_noise_epsilon_is_infinite() -> None:
    engine = PrivacyEngine()
    epoch(private(engine, nn.Linear(4, 3), noise_multiplier=0.0), plain)
    assert engine.accountant.history == [(0.0, 1 / 3, 3)]
    assert engine.get_epsilon(1e-3) == math.inf
    assert engine.guarantee(1e-3).status == "none"


def test_what_others_have_trained_is_refused_and_names_the_way() -> None:
    model, engine = nn.Linear(4, 3), PrivacyEngine()
    epoch(private(engine, model), plain)
    with pytest.raises(SettingError, match="load_checkpoint"):
        private(PrivacyEngine(), model)
    epoch(private(engine, model), plain)  # the engine that knows what was before
    assert len(engine.accountant) == 6


def test_what_another_run_has_given_to_a_part_is_not_taken_for_public() -> None:
    model, engine = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3)), PrivacyEngine()
    epoch(private(engine, model), plain)
    other = nn.Sequential(nn.Linear(4, 3))
    rt.fit(other, (X, Y), loss="cross_entropy", epsilon=1.0, delta=1e-3, epochs=1, batch_size=20)
    model[1] = other[0]
    with pytest.raises(SettingError, match="would be left out"):
        private(engine, model)


def test_the_second_of_two_loops_made_beforehand_counts_the_first() -> None:
    model, engine = nn.Linear(4, 3), PrivacyEngine(accountant="rdp")
    first, second = private(engine, model), private(engine, model)
    epoch(first, plain)
    epoch(second, plain)
    assert len(engine.accountant) == 6


def test_a_checkpoint_says_what_it_rests_on_and_a_damaged_one_what_to_do(tmp_path: Path) -> None:
    engine, path = PrivacyEngine(), tmp_path / "checkpoint.pt"
    parts = private(engine, nn.Linear(4, 3))
    epoch(parts, plain)
    engine.save_checkpoint(path, module=parts[0])
    assert BROUGHT not in engine.guarantee(1e-3).assumptions
    engine, model = PrivacyEngine(), nn.Linear(4, 3)
    parts = private(engine, model)
    engine.load_checkpoint(path, module=parts[0])
    epoch(parts, plain)
    assert BROUGHT in engine.guarantee(1e-3).assumptions
    path.write_text("hello")
    for file in (path, tmp_path / "none.pt"):
        with pytest.raises(DataError, match="save_checkpoint"):
            engine.load_checkpoint(file, module=parts[0])
    torch.save({"privacy_accountant_state_dict": {"history": []}}, path)
    with pytest.raises(DataError, match="module_state_dict"):
        engine.load_checkpoint(path, module=parts[0])


def test_statistics_are_not_kept_of_what_is_passed_beside_the_loop() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 3)).eval()
    parts, before = private(PrivacyEngine(), model), model.state_dict()["1.running_mean"].clone()
    epoch(parts, plain)
    parts[0](X)  # in evaluation mode nothing is kept
    parts[0].train()
    with pytest.raises(ModelError, match="BatchNorm1d"):
        parts[0](X)
    assert torch.equal(model.state_dict()["1.running_mean"], before)


def test_what_is_said_beside_a_history_is_not_left_out_in_silence(tmp_path: Path) -> None:
    path = tmp_path / "history.json"
    path.write_text("[[1.0, 0.1, 5]]")
    asked = ["account", "--from-opacus", str(path), "--delta", "1e-5"]
    assert CliRunner().invoke(app, asked).exit_code == 0
    refused = CliRunner().invoke(app, [*asked, "--noise-multiplier", "4"])
    assert refused.exit_code != 0
    assert "leave out --noise-multiplier" in str(refused.exception or refused.output)
