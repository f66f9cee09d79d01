"""Going on in the same process after a failed write: one line for each place, and nothing released on less."""

from __future__ import annotations

import errno
import multiprocessing
import os
import random
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from reticent.accounting import Entry, Gaussian, Ledger
from reticent.accounting.ledger import read_entries
from reticent.errors import FileWarning, ResumeError

ENTRIES = [Entry(number, 0, Gaussian(2.0), f"{number:032x}") for number in range(4)]
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["torch", "torch._dynamo", "reticent.run"])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.jsonl"


@contextmanager
def failing(name: str, error: BaseException, *, does: Callable[..., object]) -> Iterator[None]:
    """`os.NAME` does something to its arguments, then raises the error."""
    with pytest.MonkeyPatch.context() as patch:

        def fails(*arguments: object) -> None:
            does(*arguments)
            raise error

        patch.setattr(os, name, fails)
        yield


WRITE = os.write


def half(file: int, data: bytes) -> int:
    return WRITE(file, data[: len(data) // 2])


FULL, BROKEN = OSError(errno.ENOSPC, "No space left on device"), OSError(errno.EIO, "Input/output error")
WAYS = {
    "full, nothing written": ("write", FULL, lambda *_: None),
    "full, a half written": ("write", FULL, half),
    "broken, all written": ("write", BROKEN, WRITE),
    "written and not synced": ("fdatasync", BROKEN, lambda *_: None),
    "written and synced, and yet": ("fdatasync", BROKEN, os.fdatasync),
    "interrupted in a half": ("write", KeyboardInterrupt(), half),
    "interrupted while syncing": ("fdatasync", KeyboardInterrupt(), lambda *_: None),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("before", [0, 2])
@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.filterwarnings("ignore::reticent.errors.FileWarning")
def test_a_failed_write_is_made_good_before_anything_follows(path: Path, way: str, before: int, times: int) -> None:
    whole = Ledger(path.with_name("whole"))
    ledger = Ledger(path)
    for entry in ENTRIES[:before]:
        ledger.record(entry)
    for _ in range(times):
        name, error, does = WAYS[way]
        with failing(name, error, does=does), pytest.raises((ResumeError, KeyboardInterrupt)):
            ledger.record(ENTRIES[before])
        assert not ledger.holds(ENTRIES[before])
        assert len(ledger) == before
    for entry in ENTRIES[before:]:
        assert ledger.record(entry)
    for entry in ENTRIES:
        whole.record(entry)
    assert path.read_bytes() == path.with_name("whole").read_bytes()
    assert read_entries(path) == list(ledger) == list(Ledger(path)) == ENTRIES
    assert ledger.mark() == whole.mark()


def test_the_disk_is_named_and_mending_is_told(path: Path) -> None:
    ledger = Ledger(path)
    ledger.record(ENTRIES[0])
    with failing("write", FULL, does=half), pytest.raises(ResumeError, match="the disk is full"):
        ledger.record(ENTRIES[1])
    with pytest.warns(
        FileWarning, match=r"ledger\.jsonl was mended: \d+ bytes of a release that was not written whole"
    ):
        ledger.record(ENTRIES[1])


def test_where_mending_fails_too_nothing_follows(path: Path) -> None:
    ledger = Ledger(path)
    ledger.record(ENTRIES[0])
    with failing("write", FULL, does=half), pytest.raises(ResumeError):
        ledger.record(ENTRIES[1])
    with failing("ftruncate", BROKEN, does=lambda *_: None):
        for entry in ENTRIES:  # a replay is not trusted either
            with pytest.raises(ResumeError, match="Input/output error"):
                ledger.record(entry)
    with pytest.warns(FileWarning):
        assert not ledger.record(ENTRIES[0])
    assert ledger.record(ENTRIES[1])
    assert read_entries(path) == ENTRIES[:2]


def test_going_on_in_a_second_ledger_after_a_failed_write(path: Path) -> None:
    """As a notebook does that makes its run anew: the half line is mended once, and the first writer is out."""
    first = Ledger(path)
    first.record(ENTRIES[0])
    with failing("write", FULL, does=half), pytest.raises(ResumeError):
        first.record(ENTRIES[1])
    second = Ledger(path)
    with pytest.warns(FileWarning):
        second.record(ENTRIES[1])
    second.record(ENTRIES[2])
    with pytest.raises(ResumeError, match="something else writes there"):
        first.record(ENTRIES[1])
    assert read_entries(path) == ENTRIES[:3]


@pytest.mark.parametrize("change", ["deleted", "emptied", "halved", "replaced", "longer"])
def test_a_file_that_changes_while_the_run_goes_is_refused(path: Path, change: str) -> None:
    ledger = Ledger(path)
    for entry in ENTRIES[:3]:
        ledger.record(entry)
    data = path.read_bytes()
    if change in ("deleted", "replaced"):
        path.unlink()
    if change != "deleted":
        now = {"emptied": b"", "halved": data[: len(data) // 2], "replaced": data, "longer": data + b"x"}[change]
        path.write_bytes(now)
    with pytest.raises(ResumeError, match=r"[Nn]othing more is released"):
        ledger.record(ENTRIES[3])


def test_the_end_of_the_last_line_is_added_where_it_is_missing(path: Path) -> None:
    ledger = Ledger(path)
    for entry in ENTRIES[:2]:
        ledger.record(entry)
    path.write_bytes(path.read_bytes()[:-1])
    again = Ledger(path)
    assert list(again) == ENTRIES[:2]
    with pytest.warns(FileWarning, match="the end of its last line was added"):
        again.record(ENTRIES[2])
    again.record(ENTRIES[3])
    assert read_entries(path) == ENTRIES


SCRIPT = """
from pathlib import Path
from reticent.accounting import Entry, Gaussian, Ledger
ledger = Ledger(Path(path))
pipe.send(len(ledger))
for number in range(len(ledger), 1_000_000):
    ledger.record(Entry(number, 0, Gaussian(2.0), f"{number:032x}"))
    pipe.send(number)
"""


def test_killed_in_the_middle_of_writing_nothing_that_was_acknowledged_is_lost(path: Path) -> None:
    chance, said = random.Random(0), 0
    for _ in range(8):
        here, there = PROCESSES.Pipe(duplex=False)
        process = PROCESSES.Process(target=exec, args=(SCRIPT, {"path": str(path), "pipe": there}))
        process.start()
        there.close()
        assert here.recv() >= said
        for _ in range(chance.randrange(1, 40)):  # so many are acknowledged, and more are on their way
            said = here.recv() + 1
        process.kill()
        process.join()
        try:
            while True:
                said = here.recv() + 1
        except EOFError:
            pass
        found = read_entries(path) if path.exists() else []
        assert len(found) >= said
        assert [entry.round for entry in found] == list(range(len(found)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FileWarning)
        ledger = Ledger(path)
        assert ledger.record(Entry(len(ledger), 0, Gaussian(2.0), ""))
    assert len(read_entries(path)) == len(ledger) > said > 0
