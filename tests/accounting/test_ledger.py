"""The ledger on disk: framed and chained lines, files from before and from later, crashes and changes at every byte."""

from __future__ import annotations

import hashlib
import json
import math
import os
import warnings
from pathlib import Path

import pytest

from reticent.accounting import Entry, Gaussian, Ledger, Subsampled, price
from reticent.accounting.entries import parse_ledger
from reticent.accounting.ledger import read_entries, read_ledger
from reticent.errors import FileWarning, ResumeError

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
    assert first == {"ledger": 2}
    assert [line["round"] for line in rest] == [0, 0, 1]
    for book in (ledger, Ledger(path)):
        assert (len(book), list(book)) == (3, ENTRIES)
        assert book.tally() == {STEP: 2, Gaussian(8.0): 1}
    assert read_entries(path) == ENTRIES


def test_every_line_carries_its_length_and_is_chained_to_the_one_before(path: Path) -> None:
    """Computed here by hand, as anybody can."""
    mark = write(path, *ENTRIES).mark()
    header, *lines, last = path.read_bytes().split(b"\n")
    chain = hashlib.sha256(header).digest()
    for line in lines:
        front, body = line.split(b'"round"', 1)
        said, body = json.loads(line), b'{"round"' + body
        chain = hashlib.sha256(chain + body).digest()
        assert (said["length"], said["chain"]) == (len(body), chain.hex())
        assert front == b'{"length":%d,"chain":"%s",' % (len(body), chain.hex().encode())
    assert last == b""
    assert (mark.entries, mark.chain) == (3, chain.hex())
    assert write(path.with_name("again"), *ENTRIES).mark() == mark == read_ledger(path).mark


def test_a_ledger_in_memory_comes_as_far_as_one_in_a_file(path: Path) -> None:
    memory, file = Ledger(), Ledger(path)
    for entry in ENTRIES:
        memory.record(entry)
        file.record(entry)
        assert memory.mark() == file.mark()
    assert memory.mark(1) == write(path.with_name("one"), ENTRIES[0]).mark()


def test_who_only_reads_opens_nothing_for_writing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(path, *ENTRIES)
    path.write_bytes(path.read_bytes()[:-3])
    before = path.read_bytes()
    monkeypatch.setattr(os, "open", lambda *_: pytest.fail("opened"))
    assert list(Ledger(path)) == read_entries(path) == ENTRIES[:2]
    assert path.read_bytes() == before


def test_a_file_without_entries_is_not_there(path: Path) -> None:
    Ledger(path)
    assert not path.exists()
    path.write_bytes(b"")
    assert read_entries(path) == []


def test_header_and_entry_are_on_disk_before_anything_can_be_released(path: Path, monkeypatch) -> None:
    synced: list[int] = []
    sync = os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda file: (sync(file), synced.append(len(read_entries(path)))))
    write(path, *ENTRIES)
    assert [count for count in synced if count] == [1, 2, 3]


def test_what_is_found_is_synced_before_it_is_trusted_and_so_is_its_name(path: Path, monkeypatch) -> None:
    write(path, *ENTRIES)
    ledger, synced = Ledger(path), []
    fdatasync, fsync = os.fdatasync, os.fsync
    monkeypatch.setattr(os, "fdatasync", lambda file: (synced.append(os.fstat(file).st_ino), fdatasync(file)))
    monkeypatch.setattr(os, "fsync", lambda file: (synced.append(os.fstat(file).st_ino), fsync(file)))
    assert not ledger.record(ENTRIES[0])  # a replay: its noisy value may be used now
    assert {path.stat().st_ino, path.parent.stat().st_ino} <= set(synced)


# -- older and newer files ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["", '{"ledger": 1}\n', '{"ledger": 1, "written_by": "somebody"}\n'])
@pytest.mark.parametrize("cut", ["", '{"round":1,"quer'])
def test_older_files_are_read_but_not_gone_on_with(path: Path, first: str, cut: str) -> None:
    path.write_text(first + OLD + cut)
    assert list(Ledger(path)) == read_entries(path) == ENTRIES[:2]
    for entry in ENTRIES:
        with pytest.raises(ResumeError, match=r"older version.*another folder"):
            Ledger(path).record(entry)
    assert path.read_text() == first + OLD + cut


def test_of_older_files_a_line_without_an_end_counts_and_one_written_twice_counts_once(path: Path) -> None:
    path.write_text(OLD + OLD.splitlines()[1])
    assert read_entries(path) == ENTRIES[:2]
    path.write_text(OLD + OLD.replace("8.0", "9.0"))
    with pytest.raises(ResumeError, match="line 4: round 0 has another entry for query 1"):
        read_entries(path)


@pytest.mark.parametrize("version", [3, 17, "1.5", None, True])
def test_a_version_that_is_not_known_is_refused_and_left_alone(path: Path, version: object) -> None:
    text = json.dumps({"ledger": version}) + '\n{"anything":["but","an","entry"]}\n{"cut sho'
    path.write_text(text)
    for read in (Ledger, read_entries):
        with pytest.raises(ResumeError, match=f"version {version}.*the Reticent that wrote it.*another folder"):
            read(path)
    assert path.read_text() == text


def test_an_event_that_is_not_known_makes_the_price_infinite(path: Path) -> None:
    path.write_text('{"ledger": 1}\n' + OLD + '{"round":1,"query":0,"event":"Shuffled","rate":0.1,"seal":"d4"}\n')
    cost = price(Ledger(path).tally(), 1e-5)
    assert math.isinf(cost.epsilon)
    assert "unknown event 'Shuffled'" in cost.why


# -- crashes and changes -----------------------------------------------------------------------------------------------


@pytest.fixture
def _unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Crashes are played here: a disk that is waited for adds nothing."""
    monkeypatch.setattr(os, "fdatasync", lambda _file: None)
    monkeypatch.setattr(os, "fsync", lambda _file: None)


@pytest.mark.usefixtures("_unsynced")
@pytest.mark.parametrize("zeros", [b"", bytes(40)], ids=["cut", "zeros"])
def test_a_crash_at_any_byte_loses_only_what_was_not_yet_released(path: Path, zeros: bytes) -> None:
    """Zeros stand there after a power cut; never in the place of a line's end alone, which is written with it."""
    write(path, *ENTRIES)
    whole = path.read_bytes()
    ends = [place for place, byte in enumerate(whole) if byte == ord("\n")]
    for cut in range(len(whole) + 1):
        if zeros and cut in ends:
            continue
        path.write_bytes(whole[:cut] + zeros)
        kept = sum(end <= cut for end in ends[1:])
        assert read_entries(path) == ENTRIES[:kept]
        mended = bool(zeros) or cut not in {0, *(end + 1 for end in ends)}
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            write(path, *ENTRIES)
        assert [warning.category for warning in said] == [FileWarning] * mended
        assert path.read_bytes() == whole


def test_another_byte_at_any_place_is_named(path: Path) -> None:
    write(path, *ENTRIES)
    whole = path.read_bytes()
    for place, was in enumerate(whole):
        for byte in {*(was ^ 1 << bit for bit in range(8)), 0x0A, 0x0D, ord("1")} - {was}:
            with pytest.raises(ResumeError, match=r"Bring the file back|the Reticent that wrote it"):
                parse_ledger(whole[:place] + bytes([byte]) + whole[place + 1 :], path)


def test_a_carriage_return_cuts_nothing_off(path: Path) -> None:
    write(path, *(Entry(number, 0, STEP, "a1") for number in range(100)))
    lines = path.read_bytes().split(b"\n")
    lines[1] = lines[1].replace(b"a1", b"a\r")
    path.write_bytes(b"\n".join(lines))
    for read in (Ledger, read_entries):
        with pytest.raises(ResumeError, match="line 2: its hash does not follow"):
            read(path)
    assert path.read_bytes() == b"\n".join(lines)


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (lambda lines: lines[:1] + lines[2:], "line 2: its hash"),
        (lambda lines: [*lines[:2], lines[1], *lines[2:]], "line 3: its hash"),
        (lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], "line 2: its hash"),
        (lambda lines: lines[1:], "line 1: its layout"),
        (lambda lines: [*lines[:-1], b'{"round":2}', b""], "line 5: it does not begin with its length"),
        (lambda lines: [*lines[:3], lines[3].replace(b"c3", b"c33"), b""], "line 4: it says that it is 1"),
    ],
    ids=["first taken away", "one twice", "two exchanged", "no header", "one added", "one longer"],
)
def test_edited_lines_are_named(path: Path, edit, says: str) -> None:
    write(path, *ENTRIES)
    path.write_bytes(b"\n".join(edit(path.read_bytes().split(b"\n"))))
    with pytest.raises(ResumeError, match=says + ".*Bring the file back"):
        read_entries(path)


def test_two_entries_for_one_place_are_refused_also_where_the_chain_is_right(path: Path) -> None:
    from reticent.accounting.framing import frame

    write(path, *ENTRIES)
    again = frame(Entry(0, 1, Gaussian(9.0), "b2").to_body(), read_ledger(path).links[-1])
    path.write_bytes(path.read_bytes() + again)
    with pytest.raises(ResumeError, match="line 5: round 0 has an entry for query 1 already"):
        Ledger(path)


def test_a_line_that_is_none_is_named(path: Path) -> None:
    path.write_text('{"ledger": 1}\n{"round":0,"event":"Gaussian","noise_multiplier":1.0}\n')
    with pytest.raises(ResumeError, match=r"damaged.* line 2"):
        Ledger(path)
    path.write_bytes(b'{"ledger": 1}\n' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"\n")
    with pytest.raises(ResumeError, match="damaged"):
        Ledger(path)
