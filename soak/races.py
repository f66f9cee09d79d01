"""Races: several processes at once in one folder, cache or file; one wins, the others wait or are told who holds it."""

from __future__ import annotations

import os
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

import numpy as np

from reticent.data.loading.arrays import read_arrays, write_arrays
from reticent.errors import ResumeError
from reticent.experiments.job import Job, claim, failure, store_record
from reticent.experiments.locks import locked
from reticent.experiments.recipe import Recipe
from reticent.experiments.sweep import write_results
from reticent.files import make_folder, replace_file
from reticent.results import read_results
from soak.faults import apart, finish, what_came
from soak.tally import Tally

MANY = 4


def together(work: Callable[[int], None], count: int = MANY) -> list[str]:
    """Do something in several processes at once; the tracebacks of those that failed."""
    children, pipes = [], []
    gate_out, gate_in = os.pipe()
    for number in range(count):
        here, there = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(gate_in)
            os.read(gate_out, 1)  # until all are there
            said = ""
            try:
                work(number)
            except BaseException:
                said = traceback.format_exc()
            with os.fdopen(there, "w") as pipe:
                pipe.write(said[-800:])
            os._exit(0)
        os.close(there)
        children.append(child)
        pipes.append(here)
    os.close(gate_in)
    os.close(gate_out)
    said = []
    for child, here in zip(children, pipes, strict=True):
        with os.fdopen(here) as pipe:
            said.append(pipe.read())
        os.waitpid(child, 0)
    return [one for one in said if one]


def _runs(place: Path) -> list[str]:
    """Two go on with one run: one of them does, the other is told by whom the folder is held."""
    apart(lambda: finish("dpsgd", place / "whole"))
    expected = what_came(place / "whole")

    def goes_on(_: int) -> None:
        try:
            finish("dpsgd", place / "run")
        except ResumeError as error:
            if "in use by process" not in str(error):
                raise

    wrong = together(goes_on, 2)
    code, said = apart(lambda: finish("dpsgd", place / "run"))
    found = what_came(place / "run")
    return [*wrong, *([said] if code else []), *(part for part in expected if found[part] != expected[part])]


def _claims(place: Path) -> list[str]:
    job = Job(name="a", label="a", recipe=Recipe(data="digits", epsilon=3.0, seed=0))

    def claims(_: int) -> None:
        for _ in range(5):
            with locked(place):
                claim(job, place / "a")

    return together(claims, 6)


def _records(place: Path) -> list[str]:
    def records(number: int) -> None:
        job = Job(name=f"run{number}", label="a", recipe=Recipe(data="digits", epsilon=3.0, seed=0))
        make_folder(place / "runs" / job.name)
        store_record(place / "runs" / job.name, failure(job, "nothing"))
        write_results(place)

    wrong = together(records)
    write_results(place)
    found = {result.run for result in read_results(place / "results.jsonl")}
    return [*wrong, *([] if len(found) == MANY else [f"{found} are recorded"])]


def _caches(place: Path) -> list[str]:
    def caches(_: int) -> None:
        for _ in range(5):
            if read_arrays(place / "cache") is None:
                write_arrays(place / "cache", {"x": np.arange(1000)}, "it")
            found = read_arrays(place / "cache")
            if found is None or found["x"].tolist() != list(range(1000)):
                raise AssertionError("another cache")

    return together(caches)


def _files(place: Path) -> list[str]:
    def writes(number: int) -> None:
        for _ in range(10):
            replace_file(place / "a", bytes([number]) * 1000)
            found = (place / "a").read_bytes()
            if len(found) != 1000 or len(set(found)) != 1:
                raise AssertionError("half a file")

    return together(writes, 6)


RACES = {"runs": _runs, "claims": _claims, "records": _records, "caches": _caches, "files": _files}


def soak_races(each: int, kinds: tuple[str, ...] = tuple(RACES)) -> Tally:
    """So many races of each kind."""
    tally = Tally("races")
    for kind in kinds:
        for _ in range(each):
            with tempfile.TemporaryDirectory() as place:
                wrong = RACES[kind](Path(place))
            tally.add(kind, " | ".join(wrong) or None)
    return tally
