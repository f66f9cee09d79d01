"""Damage on disk while a run is stored or going: it is named, and going on gives what would have come without it."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import nn

import reticent as rt
from reticent import checkpoint
from reticent.accounting import Entry, Gaussian, Ledger, Subsampled
from reticent.accounting.ledger import read_entries
from reticent.errors import FileWarning, ResumeError


def a_run(folder: Path, *, resume: bool = True) -> rt.Run:
    torch.manual_seed(0)
    net = nn.Linear(3, 2)
    return rt.Run(
        net,
        torch.optim.SGD(net.parameters(), lr=0.1),
        (torch.randn(50, 3), torch.randint(0, 2, (50,))),
        method=rt.methods.dpsgd(noise_multiplier=1.0),
        batch_size=10,
        rounds=6,
        seed=0,
        folder=folder,
        resume=resume,
        checkpoint_seconds=0.0,
    )


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """A run of six rounds after its fourth."""
    folder = tmp_path / "run"
    run = a_run(folder)
    for _ in range(4):
        run.step()
    return folder


def chained_anew(path: Path, change: Callable[[Entry], Entry]) -> None:
    entries = [change(entry) for entry in read_entries(path)]
    path.unlink()
    ledger = Ledger(path)
    for entry in entries:
        ledger.record(entry)


def half(path: Path) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))


LOUD = Subsampled(0.2, Gaussian(9.0))
CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "deleted": (Path.unlink, "holds 0 releases, and 4 had been made"),
    "emptied": (lambda path: path.write_bytes(b""), "holds 0 releases, and 4 had been made"),
    "halved": (half, "holds 2 releases, and 4 had been made"),
    "torn": (lambda path: path.write_bytes(path.read_bytes()[:-9]), "holds 3 releases, and 4 had been made"),
    "a carriage return": (
        lambda path: path.write_bytes(path.read_bytes().replace(b"Gaussian", b"Gau\rsian", 1)),
        "line 2: its hash",
    ),
    "louder": (lambda path: chained_anew(path, lambda entry: replace(entry, event=LOUD)), "not those that the checkp"),
    "other seals": (
        lambda path: chained_anew(path, lambda entry: replace(entry, seal="0")),
        "not those that the check",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_run_does_not_go_on_with_a_ledger_that_was_changed(begun: Path, change: str) -> None:
    path = begun / "ledger.jsonl"
    act, says = CHANGES[change]
    act(path)
    before = path.read_bytes() if path.exists() else None
    with pytest.raises(ResumeError, match=says):
        a_run(begun)
    assert (path.read_bytes() if path.exists() else None) == before


def test_a_ledger_that_the_plan_does_not_know_is_refused_also_by_a_checkpoint_that_fits_it(begun: Path) -> None:
    ledger, path = begun / "ledger.jsonl", begun / "private" / "checkpoint.safetensors"
    chained_anew(ledger, lambda entry: replace(entry, event=LOUD))
    tree = checkpoint.read(path)
    tree["ledger"] = Ledger(ledger).mark().to_json()
    checkpoint.write(path, tree)
    with pytest.raises(ResumeError, match="not those that were planned"):
        a_run(begun)


def test_a_ledger_without_a_checkpoint_is_not_begun_anew(begun: Path) -> None:
    (begun / "private" / "checkpoint.safetensors").unlink()
    with pytest.raises(ResumeError, match="no checkpoint to go on from"):
        a_run(begun)


def test_a_run_that_is_over_does_not_open_its_ledger(begun: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    list(a_run(begun))
    opened, real = [], os.open
    monkeypatch.setattr(os, "open", lambda path, *rest: (opened.append(Path(path).name), real(path, *rest))[1])
    assert a_run(begun).over
    assert "ledger.jsonl" not in opened


@pytest.mark.parametrize("name", ["write", "fdatasync"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO], ids=["full", "broken"])
@pytest.mark.filterwarnings("ignore::reticent.errors.FileWarning")
def test_going_on_in_the_same_process_after_a_failed_write(tmp_path: Path, name: str, number: int) -> None:
    """As in a notebook: free space, run the cell again. The same weights come, and the same ledger."""
    whole = a_run(tmp_path / "whole")
    list(whole)
    run, real = a_run(tmp_path / "run"), getattr(os, name)

    def fails(file: int, *data: bytes) -> int:
        if name == "write":
            real(file, data[0][:40])
        raise OSError(number, os.strerror(number))

    for _ in range(3):
        run.step()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, name, fails)
            for _ in range(2):
                with pytest.raises(ResumeError, match="cannot write"):
                    run.step()
    list(run)
    for one, other in zip(whole.model.parameters(), run.model.parameters(), strict=True):
        assert torch.equal(one, other)
    assert (tmp_path / "run" / "ledger.jsonl").read_bytes() == (tmp_path / "whole" / "ledger.jsonl").read_bytes()
    assert run.ledger.tally() == run.plan.tally()


def test_a_half_line_of_a_run_that_is_resumed_is_mended_and_told(begun: Path, tmp_path: Path) -> None:
    path = begun / "ledger.jsonl"
    path.write_bytes(path.read_bytes() + b'{"length":176,"chain":"0123')
    run = a_run(begun)
    with pytest.warns(FileWarning, match="mended"):
        run.step()
    list(run)
    list(a_run(tmp_path / "whole"))
    assert path.read_bytes() == (tmp_path / "whole" / "ledger.jsonl").read_bytes()


# -- checkpoints -------------------------------------------------------------------------------------------------------


def test_a_bit_that_flipped_in_a_checkpoint_is_named(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    parts = [torch.randn(3), torch.tensor(True), torch.zeros(0), torch.ones(2, dtype=torch.bfloat16)]
    checkpoint.write(path, {"number": 3, "weights": parts, "key": b"secret"})
    whole = path.read_bytes()
    found = checkpoint.read(path)
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 2]) + whole[place + 1 :])
        with pytest.raises(
            ResumeError, match=r"cannot read .*checkpoint|checkpoint\.safetensors (is damaged|was written)"
        ):
            checkpoint.read(path)
    path.write_bytes(whole)
    assert str(checkpoint.read(path)) == str(found)


def test_a_checkpoint_of_an_older_version_is_read_with_a_note(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    checkpoint.write(path, {"number": 3, "weights": torch.ones(2)})
    with safe_open(path, framework="pt") as file:
        meta, tensor = file.metadata(), file.get_tensor("0")
    meta["version"] = "1"
    del meta["sha256"]
    path.write_bytes(save({"0": tensor}, metadata=meta))
    with pytest.warns(FileWarning, match="without a checksum"):
        assert checkpoint.read(path)["number"] == 3
    meta["tree"] = json.dumps({"tensor": ["0"]})
    path.write_bytes(save({"0": tensor}, metadata=meta))
    with pytest.warns(FileWarning), pytest.raises(ResumeError, match=r"cannot read .*checkpoint"):
        checkpoint.read(path)


def test_the_names_of_new_folders_are_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced, real = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (synced.append(os.fstat(file).st_ino), real(file))[1])
    checkpoint.make_folder(tmp_path / "a" / "b")
    assert {tmp_path.stat().st_ino, (tmp_path / "a").stat().st_ino} <= set(synced)
    synced.clear()
    checkpoint.make_folder(tmp_path / "a")
    assert tmp_path.stat().st_ino in synced
    shutil.rmtree(tmp_path / "a")
