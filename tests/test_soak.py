"""A small share of the soak (`make soak`): faults, races, damage and hostile bytes, a few of each."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from soak.damage import soak_damage
from soak.disk import Disk
from soak.faults import METHODS
from soak.fuzzing import Reader, problem, soak_fuzz
from soak.readers import readers
from tests import quick

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Reader]]:
    """Every reader, and the folder in which a whole file for each lies."""
    folder = tmp_path_factory.mktemp("soak")
    return folder, readers(folder)


def test_no_reader_ends_in_a_traceback(every: tuple[Path, list[Reader]]) -> None:
    folder, found = every
    for reader in found:
        for seed in reader.seeds:
            (folder / reader.file).write_bytes(seed)
            reader.read(folder / reader.file)  # what is whole is read
    assert soak_fuzz(found, folder, each=25, guided=5).wrong == []


def test_no_damaged_file_is_loaded(every: tuple[Path, list[Reader]]) -> None:
    folder, _ = every
    assert soak_damage(folder / "run", each=6).wrong == []


def test_nothing_is_lost_or_doubled_by_a_fault_or_a_race() -> None:
    """In a process of its own, which forks: one that has computed may not be forked."""
    words = ["--share", "0.02", "--only", "races,faults", "--methods", "dpsgd"]
    said = quick.run(quick.MODULE, "soak", *words, where=ROOT)
    assert said.returncode == 0, said.stdout + said.stderr
    assert "races: 5 cases, 0 wrong" in said.stdout
    assert f"faults: {-(-50 // len(METHODS))} cases, 0 wrong" in said.stdout, "a fiftieth of 2,500, for one method"


def test_the_fuzzer_sees_a_traceback(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    assert problem(lambda place: int(place.read_text()), path) is not None


def test_the_disk_fails_at_the_operation_that_was_chosen(tmp_path: Path) -> None:
    with Disk(tmp_path, 2, "full").installed() as disk:
        os.mkdir(tmp_path / "a")
        with pytest.raises(OSError, match="No space"):
            os.mkdir(tmp_path / "b")
        os.mkdir(tmp_path / "c")
    assert disk.count == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "c"]
