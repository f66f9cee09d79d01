"""Checkpoints of large models: a small share of the time, no second copy in memory, written while the run goes on."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import reticent as rt
from reticent import checkpoint, tensors
from reticent.checkpoint import Folder, checkpoint_of
from reticent.errors import ResumeError
from reticent.experiments.tracking import JsonLines
from reticent.files import replacing


def test_a_checkpoint_that_takes_long_is_written_seldom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: now[0])
    folder = Folder(tmp_path, resume=False, seconds=30.0)
    real = checkpoint.PackedTree.write

    def slowly(packed: checkpoint.PackedTree, path: Path) -> None:
        now[0] += 6.0
        real(packed, path)

    monkeypatch.setattr(checkpoint.PackedTree, "write", slowly)
    spent, rounds = 0.0, 0
    for _ in range(2000):
        now[0] += 1.0
        if folder.due():
            before = now[0]
            folder.write({"number": 1})
            spent, rounds = spent + now[0] - before, rounds + 1
    assert rounds > 10
    assert spent <= 0.05 * now[0]


def test_without_a_pause_there_is_a_checkpoint_after_every_round(tmp_path: Path) -> None:
    folder = Folder(tmp_path, resume=False, seconds=0.0)
    folder._cost = 1000.0
    assert folder.due()


def test_what_is_saved_is_written_from_where_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No copy of a tensor, and never more than a piece of it on its way to the disk."""
    weights = torch.randn(1 << 16)
    pieces: list[memoryview] = []
    real = tensors._each

    def watched(part: torch.Tensor, use: Any) -> None:
        def seen(piece: memoryview) -> None:
            pieces.append(piece)
            use(piece)

        real(part, seen)

    monkeypatch.setattr(tensors, "_each", watched)
    monkeypatch.setattr(tensors, "CHUNK", 1 << 12)
    checkpoint.write(tmp_path / "a.safetensors", {"weights": weights})
    assert {len(piece) for piece in pieces} == {1 << 12}
    weights[0] = 77.0
    assert memoryview(pieces[0]).cast("f")[0] == 77.0, "it is the tensor's own memory"


def test_a_checkpoint_behind_the_run_is_that_of_the_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on, weights = threading.Event(), torch.zeros(3)
    folder = Folder(tmp_path, resume=False, seconds=1.0)
    real = checkpoint.PackedTree.write

    def later(packed: checkpoint.PackedTree, path: Path) -> None:
        goes_on.wait()
        real(packed, path)

    monkeypatch.setattr(checkpoint.PackedTree, "write", later)
    folder.write({"weights": weights}, behind=True)
    assert not checkpoint_of(tmp_path).exists()
    assert not folder.due(), "one at a time"
    weights += 1
    goes_on.set()
    folder.release()  # whoever lets go of a folder has written what was begun
    assert checkpoint.read(checkpoint_of(tmp_path))["weights"].tolist() == [0.0, 0.0, 0.0]


def test_a_failure_behind_the_run_is_told_at_the_next_checkpoint(tmp_path: Path) -> None:
    folder = Folder(tmp_path, resume=False, seconds=1.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "write_sealed", lambda *_: replacing(Path("/nowhere/at/all")).__enter__())
        folder.write({"number": 1}, behind=True)
        folder._hold.wait()
    with pytest.raises(ResumeError, match="cannot write"):
        folder.write({"number": 2})
    folder.write({"number": 2})
    assert checkpoint.read(checkpoint_of(tmp_path))["number"] == 2


def a_run(folder: Path, blobs: Any, **more: Any) -> rt.Run:
    torch.manual_seed(0)
    net = nn.Linear(4, 2)
    method = rt.methods.dpsgd(noise_multiplier=2.0)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    return rt.Run(net, optimizer, blobs, method=method, batch_size=20, rounds=6, seed=0, folder=folder, **more)


def test_a_round_that_the_checkpoint_knows_has_its_line(tmp_path: Path, blobs: Any) -> None:
    """Whatever ends the process at a checkpoint: each round is told of once, in order."""

    class Killed(BaseException):
        pass

    for fatal in range(1, 7):
        folder = tmp_path / str(fatal)
        run = a_run(folder, blobs, checkpoint_seconds=0.0)
        run.tellers.append(JsonLines(folder / "rounds.jsonl"))
        write, count = Folder.write, [0]

        def killing(self: Folder, tree: Any, *, behind: bool = False, write=write, count=count, fatal=fatal) -> None:
            write(self, tree, behind=behind)
            count[0] += 1
            if count[0] == fatal:
                raise Killed

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Folder, "write", killing)
            with pytest.raises(Killed):
                list(run)
        path = folder / "rounds.jsonl"
        path.write_bytes(path.read_bytes() + b'{"round": 99, "ki')  # and a line that a crash cut short
        again = a_run(folder, blobs, checkpoint_seconds=0.0, resume=True)
        again.tellers.append(JsonLines(path))
        list(again)
        if fatal < 6:
            assert [json.loads(line)["round"] for line in path.read_text().splitlines()] == [1, 2, 3, 4, 5, 6]


def test_an_older_checkpoint_is_found_and_moved(tmp_path: Path, blobs: Any) -> None:
    run = a_run(tmp_path / "a", blobs, checkpoint_seconds=0.0)
    run.step()
    new, old = checkpoint_of(tmp_path / "a"), tmp_path / "a" / "checkpoint.safetensors"
    new.rename(old)
    del run
    again = a_run(tmp_path / "a", blobs, checkpoint_seconds=0.0, resume=True)
    assert again.number == 1
    list(again)
    assert new.exists()
    assert not old.exists(), "a key that is no longer needed must not stay behind"
