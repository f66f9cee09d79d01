"""How files are written: whole or not at all, by several at once, private ones for their owner only."""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from reticent.errors import ResumeError
from reticent.files import append, clear_unfinished, private_folder, replace_file, stored_at, write_private
from reticent.tensors import write_sealed, write_tensors


def test_several_at_once_leave_one_whole_file(tmp_path: Path) -> None:
    path, wrong = tmp_path / "results.jsonl", []

    def write(number: int) -> None:
        try:
            for _ in range(20):
                replace_file(path, bytes([65 + number]) * 10_000)
        except ResumeError as error:
            wrong.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(set(path.read_bytes())) == 1
    assert len(path.read_bytes()) == 10_000
    assert [file.name for file in tmp_path.iterdir()] == ["results.jsonl"]


@pytest.mark.parametrize("name", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = tmp_path / "card.json"
    replace_file(path, b"old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, name, full)
    with pytest.raises(ResumeError, match="the disk is full"):
        replace_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["card.json"]


def test_what_a_killed_process_left_is_cleared(tmp_path: Path) -> None:
    (tmp_path / ".card.json.0123abcd.new").write_bytes(b"half")
    (tmp_path / "card.json").write_bytes(b"whole")
    clear_unfinished(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["card.json"]


def test_private_things_are_for_their_owner_only(tmp_path: Path) -> None:
    place = private_folder(tmp_path)
    write_private(place / "error.txt", b"secret")
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert stat.S_IMODE((place / "error.txt").stat().st_mode) == 0o600
    assert "must not be published" in (place / "README.txt").read_text()
    assert stored_at(tmp_path, "error.txt") == place / "error.txt"
    (tmp_path / "audit.json").write_text("{}")
    assert stored_at(tmp_path, "audit.json") == tmp_path / "audit.json", "where an older version left it"


def test_what_a_failed_try_left_is_written_over(tmp_path: Path) -> None:
    path = tmp_path / "rounds.jsonl"
    end = append(path, 0, b"one\n")
    path.write_bytes(b"one\ntw")
    assert append(path, end, b"two\n") == 8
    assert path.read_bytes() == b"one\ntwo\n"


def test_tensors_are_written_as_the_format_wants_them(tmp_path: Path) -> None:
    kinds = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.bool]
    tensors = {f"part {number}": torch.arange(5).to(kind) for number, kind in enumerate(kinds)}
    tensors |= {
        "none": torch.zeros(0, 3),
        "one": torch.tensor(3.0),
        "turned": torch.randn(3, 4).t(),
        "é": torch.ones(1),
    }
    for number, write in enumerate(
        (lambda path: write_tensors(path, tensors, {}), lambda path: write_sealed(path, tensors, {}))
    ):
        path = tmp_path / f"{number}.safetensors"
        write(path)
        found = load_file(path)
        assert found.keys() == tensors.keys()
        for name, part in tensors.items():
            assert found[name].dtype == part.dtype
            assert torch.equal(found[name], part)
