"""Files of results: what a run leaves in its folder, and what many runs leave in theirs."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from reticent.errors import ResumeError
from reticent.results.fields import read_lines
from reticent.results.result import Result
from reticent.results.sealing import read_sealed, seal, unseal

ANSWER = "result.json"
"""What `train` leaves."""
RECORD = "record.json"
"""What a sweep leaves beside it."""
RESULTS = "results.jsonl"
"""All of a sweep's records in one file."""


def name_of(folder: Path) -> str:
    """What the run in a folder is called, however the folder is written.

    >>> name_of(Path("runs/a/b/..")), name_of(Path("/runs/a"))
    ('a', 'a')
    """
    return Path(os.path.abspath(folder)).name  # a link keeps the name it has here


def read_result(folder: Path) -> Result:
    """What came of the finished run in a folder, as its training left it."""
    path = folder / ANSWER
    if not path.exists():
        raise ResumeError(f"{folder} holds no finished run: {ANSWER} is not there; finish it with train --resume")
    found = Result.from_json(read_sealed(path), str(path), name=name_of(folder))
    return replace(found, run=name_of(folder))  # it may have been renamed since


def read_record(folder: Path) -> Result | None:
    """What a sweep recorded of the run in a folder, if it did."""
    path = folder / RECORD
    return Result.from_json(read_sealed(path), str(path), name=name_of(folder)) if path.exists() else None


def read_results(path: Path) -> list[Result]:
    """The results in a file with one a line."""
    return [Result.from_json(unseal(line.data, line.where), line.where) for line in read_lines(path)]


def to_line(result: Result) -> str:
    """A result as one line of such a file."""
    return seal(result.to_json()).decode() + "\n"
