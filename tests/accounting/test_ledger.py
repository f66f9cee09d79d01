"""The ledger on disk: its first line, files from before there was one, files from later, and crashes at every byte."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import pytest

from reticent.accounting import Entry, Gaussian, Ledger, Subsampled, price
from reticent.accounting.ledger import read_entries
from reticent.errors import ResumeError

STEP = Subsampled(0.1, Gaussian(2.0))
ENTRIES = [Entry(0, 0, STEP, "a1"), Entry(0, 1, Gaussian(8.0), "b2"), Entry(1, 0, STEP, "c3")]

OLD = """\
{"round":0,"query":0,"event":"Subsampled","rate":0.1,"inner":{"event":"Gaussian","noise_multiplier":2.0},"seal":"a1"}
{"round":0,"query":1,"event":"Gaussian","noise_multiplier":8.0,"seal":"b2"}
"""
"""Written by hand, as files were before they had versions."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.jsonl"


def write(path: Path, *entries: Entry) -> Ledger:
    ledger = Ledger(path)
    for entry in entries:
        ledger.record(entry)
    return ledger


def test_a_file_begins_with_its_version_which_is_no_entry(path: Path) -> None:
    ledger = write(path, *ENTRIES)
    first, *rest = map(json.loads, path.read_text().splitlines())
    assert first == {"ledger": 1}
    assert [line["round"] for line in rest] == [0, 0, 1]
    for book in (ledger, Ledger(path)):
        assert (len(book), list(book)) == (3, ENTRIES)
        assert book.tally() == {STEP: 2, Gaussian(8.0): 1}
    assert read_entries(path) == ENTRIES


def test_a_file_without_entries_is_empty(path: Path) -> None:
    Ledger(path)
    assert path.read_bytes() == b""
    assert read_entries(path) == []


def test_header_and_entry_are_on_disk_before_anything_can_be_released(path: Path, monkeypatch) -> None:
    synced: list[int] = []
    sync = os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda file: (sync(file), synced.append(len(read_entries(path)))))
    write(path, *ENTRIES)
    assert synced == [1, 2, 3]


def test_files_from_before_there_were_versions_are_read_and_go_on_as_they_are(path: Path) -> None:
    path.write_text(OLD)
    ledger = Ledger(path)
    assert list(ledger) == ENTRIES[:2]
    assert not ledger.record(ENTRIES[0])  # a replay
    assert ledger.record(ENTRIES[2])
    lines = path.read_text().splitlines(keepends=True)
    assert "".join(lines[:2]) == OLD
    assert len(lines) == 3
    assert list(Ledger(path)) == read_entries(path) == ENTRIES


@pytest.mark.parametrize("version", [2, 17, "1.5", None])
def test_a_version_that_is_not_known_is_refused_and_left_alone(path: Path, version: object) -> None:
    text = json.dumps({"ledger": version}) + '\n{"anything":["but","an","entry"]}\n{"cut sho'
    path.write_text(text)
    for read in (Ledger, read_entries):
        with pytest.raises(ResumeError, match=f"version {version}.*the Reticent that wrote it.*another folder"):
            read(path)
    assert path.read_text() == text


def test_what_else_stands_in_the_first_line_is_ignored(path: Path) -> None:
    path.write_text('{"ledger": 1, "written_by": "somebody"}\n' + OLD)
    assert list(Ledger(path)) == ENTRIES[:2]


def test_an_event_that_is_not_known_makes_the_price_infinite(path: Path) -> None:
    path.write_text('{"ledger": 1}\n' + OLD + '{"round":1,"query":0,"event":"Shuffled","rate":0.1,"seal":"d4"}\n')
    cost = price(Ledger(path).tally(), 1e-5)
    assert math.isinf(cost.epsilon)
    assert "unknown event 'Shuffled'" in cost.why


def test_a_crash_at_any_byte_loses_only_what_was_not_yet_released(path: Path) -> None:
    write(path, *ENTRIES)
    whole = path.read_bytes()
    ends = [place + 1 for place, byte in enumerate(whole) if byte == ord("\n")][1:]
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        assert read_entries(path) == ENTRIES[: sum(end <= cut for end in ends)]
        write(path, *ENTRIES)
        assert path.read_bytes() == whole


def test_a_line_that_is_none_is_named(path: Path) -> None:
    path.write_text('{"ledger": 1}\n{"round":0,"event":"Gaussian","noise_multiplier":1.0}\n')
    with pytest.raises(ResumeError, match="damaged"):
        Ledger(path)
