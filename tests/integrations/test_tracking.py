"""Trackers are told public numbers, no times, and only where times tell nothing."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from reticent.errors import SettingError
from reticent.integrations.tracking import MLflow, TensorBoard, WandB
from reticent.methods import dpsgd, dpsur
from reticent.run import Run

PUBLIC = {"kept", "kept_so_far", "noise_multiplier", "max_grad_norm", "batch_size", "lr", "epsilon_if_planned"}


def make(blobs: tuple[Tensor, Tensor], **settings: Any) -> Run:
    model = nn.Linear(4, 2)
    said = {"method": dpsgd(noise_multiplier=2.0), "batch_size": 20, "rounds": 3, "seed": 0, **settings}
    return Run(model, torch.optim.SGD(model.parameters(), lr=0.1), blobs, **said)


def told(run: Run, tracker: Any) -> Run:
    for step in run:
        tracker(run, step)
    return run


class Said:
    """Remembers every call, in the place of a package that is not installed."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.config = self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def call(*args: Any, **kwargs: Any) -> Any:
            self.calls.append((name, (args, kwargs)))
            return None if name == "active_run" else self

        return call


def fake(monkeypatch: pytest.MonkeyPatch, name: str) -> Said:
    said, module = Said(), types.ModuleType(name)
    module.__getattr__ = said.__getattr__  # type: ignore[method-assign]
    monkeypatch.setitem(sys.modules, name, module)
    return said


def test_mlflow_is_told_public_numbers_without_times(
    blobs: tuple[Tensor, Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = fake(monkeypatch, "mlflow")
    run = told(make(blobs), MLflow())
    names = [name for name, _ in said.calls]
    assert names == ["active_run", "start_run", "log_params", *["log_metrics"] * 3, "end_run"]
    assert said.calls[2][1][0][0]["guarantee"] == str(run.guarantee())
    for number, (_, (args, kwargs)) in enumerate(said.calls[3:6], 1):
        assert {name.removeprefix("public/") for name in args[0]} <= PUBLIC
        assert kwargs == {"step": number, "timestamp": number}


def test_wandb_is_told_all_rounds_at_the_end(blobs: tuple[Tensor, Tensor], monkeypatch: pytest.MonkeyPatch) -> None:
    said = fake(monkeypatch, "wandb")
    tracker, run = WandB(project="mine"), make(blobs)
    for step in run:
        assert "log" not in [name for name, _ in said.calls]
        tracker(run, step)
    assert said.calls[0] == ("Settings", ((), {"console": "off", "x_disable_stats": True, "save_code": False}))
    assert said.calls[1][1][1]["project"] == "mine"
    logged = [call for call in said.calls if call[0] == "log"]
    assert [kwargs["step"] for _, (_, kwargs) in logged] == [1, 2, 3]
    assert all({name.removeprefix("public/") for name in args[0]} <= PUBLIC for _, (args, _) in logged)


def test_where_time_tells_of_examples_it_is_not_noted(
    blobs: tuple[Tensor, Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(monkeypatch, "mlflow")
    hidden = make(blobs, method=dpsur(noise_multiplier=2.0, hidden_attempts=True), seed=None)
    with pytest.raises(SettingError, match="notes when things were written"):
        told(hidden, MLflow())


@pytest.mark.parametrize(("kind", "name"), [(MLflow, "mlflow"), (WandB, "wandb")])
def test_the_extra_is_named(kind: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(SettingError, match=rf"pip install 'reticent\[{name}\]'"):
        kind()


def test_a_real_tensorboard_reads_it(blobs: tuple[Tensor, Tensor], tmp_path: Path) -> None:
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator", reason="no tensorboard")
    run = told(make(blobs), TensorBoard(tmp_path))
    found = events.EventAccumulator(str(tmp_path)).Reload()
    scalars = found.Scalars("public/noise_multiplier")
    assert [(one.step, one.value, one.wall_time) for one in scalars] == [(n, 2.0, float(n)) for n in (1, 2, 3)]
    assert found.Scalars("public/epsilon_if_planned")[-1].value == pytest.approx(run.guarantee().epsilon, abs=1e-3)


@pytest.mark.slow
def test_a_real_mlflow_keeps_it(blobs: tuple[Tensor, Tensor], tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow", reason="no mlflow")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
    told(make(blobs), MLflow())
    (found,) = mlflow.search_runs(output_format="list")
    assert found.data.metrics["public/noise_multiplier"] == 2.0
