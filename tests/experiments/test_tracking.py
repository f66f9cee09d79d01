"""What is tracked of a run is public, whole, and written once."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch
import typer
from torch import Tensor, nn
from typer.testing import CliRunner

import reticent as rt
from reticent.cli.train import train
from reticent.errors import DataError, SettingError
from reticent.experiments.tracking import JsonLines, write_private_diagnostics
from reticent.integrations.tracking import TensorBoard

app = typer.Typer()
app.command()(train)
app.callback()(lambda: None)  # so that `train` stays a word of the command line


def make(examples: tuple[Tensor, Tensor], **changes: Any) -> rt.Run:
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    settings: dict[str, Any] = {"method": rt.methods.dpsgd(noise_multiplier=2.0), "batch_size": 20, "rounds": 8}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return rt.Run(model, optimizer, examples, seed=0, **(settings | changes))


def track(run: rt.Run, path: Path, rounds: int | None = None) -> None:
    write = JsonLines(path)
    for step in run:
        write(run, step)
        if step.number == rounds:
            break


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_one_line_a_round_with_public_numbers(blobs: tuple[Tensor, Tensor], tmp_path: Path) -> None:
    track(make(blobs), tmp_path / "rounds.jsonl")
    lines = read(tmp_path / "rounds.jsonl")
    assert [line["round"] for line in lines] == list(range(1, 9))
    public = {"round", "of", "kept", "kept_so_far", "noise_multiplier", "max_grad_norm", "batch_size", "lr"}
    assert all(set(line) == public | {"epsilon_if_planned"} for line in lines)
    assert lines[-1]["epsilon_if_planned"] == pytest.approx(make(blobs).guarantee().epsilon)


def test_figures_do_not_tell_how_long_hidden_attempts_took(blobs: tuple[Tensor, Tensor], tmp_path: Path) -> None:
    method = rt.methods.dpsur(noise_multiplier=4.0, hidden_attempts=True)
    track(make(blobs, method=method, rounds=3), tmp_path / "rounds.jsonl")
    assert [line["epsilon_if_planned"] is not None for line in read(tmp_path / "rounds.jsonl")] == [False, False, True]


def test_nothing_in_the_lines_depends_on_the_examples(blobs: tuple[Tensor, Tensor], tmp_path: Path) -> None:
    """The strongest test of "public": quite other examples give the very same lines."""
    x, y = blobs
    told = []
    for number, examples in enumerate([(x, y), (100 * torch.randn_like(x), 1 - y)]):
        track(make(examples), tmp_path / str(number))
        told.append(
            [{k: v for k, v in line.items() if k != "epsilon_if_planned"} for line in read(tmp_path / str(number))]
        )
    assert told[0] == told[1]


def test_the_schedule_of_a_method_is_told_round_by_round(blobs: tuple[Tensor, Tensor], tmp_path: Path) -> None:
    method = rt.methods.noise_decay(noise_multiplier=8.0, schedule="step", period=1, k=0.5)
    track(make(blobs, method=method, batch_size=100), tmp_path / "rounds.jsonl")
    noises = [line["noise_multiplier"] for line in read(tmp_path / "rounds.jsonl")]
    assert noises[0] == 8.0
    assert len(set(noises)) > 2
    assert noises == sorted(noises, reverse=True)


def test_after_a_crash_no_round_is_missing_or_double(blobs: tuple[Tensor, Tensor], tmp_path: Path) -> None:
    path = tmp_path / "rounds.jsonl"
    track(make(blobs, folder=tmp_path / "run"), path, rounds=5)
    with path.open("a") as file:
        file.write('{"round": 6, "of"')  # the crash came while it was written
    track(make(blobs, folder=tmp_path / "run", resume=True), path)
    assert [line["round"] for line in read(path)] == list(range(1, 9))


def test_a_file_of_something_else_is_not_cut(blobs: tuple[Tensor, Tensor], tmp_path: Path) -> None:
    path = tmp_path / "rounds.jsonl"
    path.write_text('{"colour": "blue"}\n')
    with pytest.raises(DataError, match="round is missing"):
        track(make(blobs), path)
    assert path.read_text() == '{"colour": "blue"}\n'


def test_private_diagnostics_are_marked_and_for_the_owner_only(blobs: tuple[Tensor, Tensor], tmp_path: Path) -> None:
    run = make(blobs, private_diagnostics=True)
    list(run)
    path = tmp_path / "private.jsonl"
    write_private_diagnostics(run, path)
    assert all(line["private"] is True for line in read(path))
    assert path.stat().st_mode & 0o077 == 0
    with pytest.raises(SettingError, match="private_diagnostics=True"):
        write_private_diagnostics(make(blobs), path)


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, float, int]]:
    """What a writer of TensorBoard, if it were installed, would be told."""
    written: list[tuple[str, float, int]] = []

    class Writer:
        def __init__(self, folder: str, purge_step: int) -> None:
            written.append((f"opened {Path(folder).name}", 0.0, purge_step))

        def add_scalar(self, name: str, value: float, number: int, walltime: float) -> None:
            assert walltime == number, "how long a round took is private"
            written.append((name, value, number))

        def close(self) -> None:
            written.append(("closed", 0.0, 0))

    module = types.ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = Writer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    return written


def test_tensorboard_gets_the_same_numbers(
    blobs: tuple[Tensor, Tensor], tmp_path: Path, board: list[tuple[str, float, int]]
) -> None:
    track(make(blobs, folder=tmp_path / "run"), tmp_path / "rounds.jsonl")
    run, write = make(blobs), TensorBoard(tmp_path / "board")
    for step in run:
        write(run, step)
    assert board[0] == ("opened board", 0.0, 1)
    assert board[-1][0] == "closed"
    told = {
        (f"public/{name}", float(value), line["round"])
        for line in read(tmp_path / "rounds.jsonl")
        for name, value in line.items()
        if name not in ("round", "of", "epsilon_if_planned")
    }
    assert told == {entry for entry in board[1:-1] if entry[0] != "public/epsilon_if_planned"}
    assert ("public/epsilon_if_planned", pytest.approx(run.guarantee().epsilon), 8) in board


def test_after_a_crash_tensorboard_forgets_the_rounds_that_are_run_again(
    blobs: tuple[Tensor, Tensor], tmp_path: Path, board: list[tuple[str, float, int]]
) -> None:
    run = make(blobs)
    steps = iter(run)
    for _ in range(5):
        next(steps)
    TensorBoard(tmp_path)(run, next(steps))
    assert board[0][2] == 6


def test_train_writes_for_tensorboard_if_asked(tmp_path: Path, board: list[tuple[str, float, int]]) -> None:
    words = ["train", "--data", "digits", "--epsilon", "3", "--epochs", "1", "--seed", "0", "--json"]
    said = CliRunner().invoke(app, [*words, "--tensorboard", "--out", str(tmp_path / "run")], catch_exceptions=False)
    rounds = json.loads(said.stdout)["rounds"]
    assert board[0] == ("opened tensorboard", 0.0, 1)
    assert [number for name, _, number in board if name == "public/lr"] == list(range(1, rounds + 1))
    assert "round" in said.stderr, "progress is told as well"


@pytest.mark.parametrize(
    ("words", "says"), [([], "give it with --out"), (["--method", "advreg", "--out", "unused"], "no rounds")]
)
def test_tensorboard_with_nowhere_or_nothing_to_write_is_refused(
    words: list[str], says: str, board: list[tuple[str, float, int]]
) -> None:
    with pytest.raises(SettingError, match=says):
        CliRunner().invoke(app, ["train", "--data", "digits", "--tensorboard", *words], catch_exceptions=False)
    assert board == []


def test_without_tensorboard_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(SettingError, match="pip install"):
        TensorBoard(tmp_path)
    words = ["train", "--data", "digits", "--epsilon", "3", "--tensorboard", "--out", str(tmp_path / "run")]
    with pytest.raises(SettingError, match="pip install"):
        CliRunner().invoke(app, words, catch_exceptions=False)
    assert not (tmp_path / "run").exists(), "nothing is trained first"
