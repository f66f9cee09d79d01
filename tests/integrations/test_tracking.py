"""Trackers are told public numbers, no times, and only where times tell nothing."""

from __future__ import annotations

import json
import struct
import sys
import time
import types
from collections.abc import Iterator
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
        self.config = self.info = self.data = self
        self.run_id, self.params = "1", dict[str, str]()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def call(*args: Any, **kwargs: Any) -> Any:
            self.calls.append((name, (args, kwargs)))
            nothing = name == "active_run" and not any(known == "start_run" for known, _ in self.calls)
            return None if nothing else self

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
    assert names[:2] == ["active_run", "start_run"]
    assert names[-5:] == ["log_params", *["log_metrics"] * 3, "end_run"]
    assert said.calls[-5][1][0][0]["guarantee"] == str(run.guarantee())
    for number, (_, (args, kwargs)) in enumerate(said.calls[-4:-1], 1):
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


@pytest.fixture
def mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A real MLflow that keeps its runs in a folder."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    mlflow = pytest.importorskip("mlflow", reason="no mlflow")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    yield mlflow
    while mlflow.active_run() is not None:
        mlflow.end_run()
    mlflow.set_tracking_uri(before)


def test_a_real_mlflow_keeps_it(blobs: tuple[Tensor, Tensor], mlflow: Any) -> None:
    run = told(make(blobs), MLflow())
    assert mlflow.active_run() is None
    (found,) = mlflow.search_runs(output_format="list")
    assert found.info.status == "FINISHED"
    assert found.data.params["guarantee"] == str(run.guarantee())
    assert {name.removeprefix("public/") for name in found.data.metrics} <= PUBLIC
    history = mlflow.MlflowClient().get_metric_history(found.info.run_id, "public/noise_multiplier")
    assert sorted((one.step, one.timestamp, one.value) for one in history) == [(n, n, 2.0) for n in (1, 2, 3)]


def test_a_run_of_mlflow_that_is_active_is_written_into_and_left_open(
    blobs: tuple[Tensor, Tensor], mlflow: Any
) -> None:
    with mlflow.start_run() as active:
        told(make(blobs), MLflow())
        assert mlflow.active_run() is not None
        told(make(blobs), MLflow())  # the same settings again, as after a crash
        with pytest.raises(SettingError, match="another noise_multiplier already"):
            told(make(blobs, method=dpsgd(noise_multiplier=3.0)), MLflow())
    assert mlflow.MlflowClient().get_run(active.info.run_id).data.params["noise_multiplier"] == "2.0"


def recorded(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """What a run of W&B has written into its file: kinds of records, with the items of those that have any."""
    from wandb.proto import wandb_internal_pb2 as wire  # type: ignore[import-not-found]

    whole, place, part = path.read_bytes(), 7, b""  # a log of LevelDB behind a head of seven bytes
    while place + 7 <= len(whole):
        if 32768 - place % 32768 < 7:
            place += 32768 - place % 32768
            continue
        length, kind = struct.unpack("<HB", whole[place + 4 : place + 7])
        if place + 7 + length > len(whole):
            return  # it is still being written
        part += whole[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):
            record, part = wire.Record.FromString(part), b""
            name = record.WhichOneof("record_type")
            told = getattr(record, name)
            told = (
                told.config.update if name == "run" else told.update if name == "config" else getattr(told, "item", ())
            )
            yield name, {item.key or ".".join(item.nested_key): json.loads(item.value_json) for item in told}


def finished(path: Path, seconds: float = 60.0) -> list[tuple[str, dict[str, Any]]]:
    """The same, once its last record is there: another process writes it, and is waited for by nobody."""
    end = time.monotonic() + seconds
    while "exit" not in dict(recorded(path)) and time.monotonic() < end:
        time.sleep(0.05)
    return list(recorded(path))


def test_a_real_wandb_keeps_it(blobs: tuple[Tensor, Tensor], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb", reason="no wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    run = told(make(blobs), WandB(project="mine", mode="offline", dir=str(tmp_path)))
    (folder,) = tmp_path.glob("wandb/offline-run-*")
    lines = finished(next(folder.glob("*.wandb")))
    history = [items for kind, items in lines if kind == "history"]
    assert [items["_step"] for items in history] == [1, 2, 3]
    names = {name for items in history for name in items if not name.startswith("_")}
    assert {name.removeprefix("public/") for name in names} <= PUBLIC
    assert [items["public/noise_multiplier"] for items in history] == [2.0] * 3
    assert {kind for kind, _ in lines}.isdisjoint({"stats", "output", "output_raw"})
    config = {name: value for kind, items in lines if kind in ("run", "config") for name, value in items.items()}
    assert config["guarantee"] == str(run.guarantee())
