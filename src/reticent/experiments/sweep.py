"""A sweep: many jobs over a few processes; what is done stays done, and one failure stops nobody else."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from reticent.errors import SettingError
from reticent.executors import Ended, each, executor_for
from reticent.experiments.job import Job, Tell, claim, failure, perform, store_record
from reticent.experiments.locks import locked
from reticent.files import replace_file
from reticent.inside.several import refuse_several
from reticent.results import RECORD, RESULTS, Result, read_record, to_line


class Watcher(Protocol):
    """Whoever wants to see how a sweep goes on."""

    def began(self, job: Job) -> None:
        """A run was started (or gone on with) in a process of its own."""

    def advanced(self, job: Job, done: int, total: int) -> None:
        """A run has got so far."""

    def ended(self, job: Job, result: Result) -> None:
        """A run is over, well or not."""


def sweep(
    jobs: Sequence[Job],
    out: Path,
    *,
    processes: int | None,
    watcher: Watcher,
    more: Callable[[], bool] = lambda: True,
    cluster: str | None = None,
) -> list[Result]:
    """Do all jobs, each in a process and a folder of its own; results.jsonl is kept up to date all the while.

    Promise: after any crash, the same call goes on where it stopped: finished runs are not run again, unfinished ones
    resume, failed ones are tried again. As soon as `more` says no, nothing is begun any more: what is at work is
    brought to its end, and only what has ended is told. On a `cluster` all machines must see the folder.
    """
    _refuse_impossible(jobs, out)
    results, named = {}, {job.name: job for job in jobs}
    for job in jobs:
        if (before := read_record(out / "runs" / job.name)) is not None and job.finished(before):
            results[job.name] = before
            watcher.ended(job, before)
    here = out if cluster is None else out.resolve()
    works = [
        (name, partial(_performed, job, here / "runs" / name)) for name, job in named.items() if name not in results
    ]
    for over in each(
        partial(executor_for, cluster, processes),
        works,
        began=lambda name: watcher.began(named[name]),
        advanced=lambda name, done, total: watcher.advanced(named[name], done, total),
        more=more,
    ):
        results[over.name] = _settled(named[over.name], over, out)
        write_results(out, list(named))
        watcher.ended(named[over.name], results[over.name])
    write_results(out, list(named))
    return [results[name] for name in named if name in results]


def _refuse_impossible(jobs: Sequence[Job], out: Path) -> None:
    refuse_several("a sweep")
    if len({job.name for job in jobs}) < len(jobs):
        raise SettingError("two runs of the sweep have the same name")
    for job in jobs:
        with locked(out):  # somebody else may be beginning the same comparison
            claim(job, out / "runs" / job.name)
    _records(out)  # a damaged one is told now, not when the first run is over


def _performed(job: Job, folder: Path, tell: Tell) -> Result:
    """Do a job wherever this is, in the folder that was claimed for it."""
    if not folder.is_dir():
        raise SettingError(
            f"{folder} cannot be seen from {socket.gethostname()}: give a folder (--out) on a disk that all machines "
            "of the cluster share, under the same path"
        )
    with locked(folder):
        return perform(job, folder, tell)


def _settled(job: Job, over: Ended, out: Path) -> Result:
    """What came of a run; one that left no answer gets a record too."""
    if isinstance(over.answer, Result):
        return over.answer
    result = failure(job, over.error or "it left no answer")
    store_record(out / "runs" / job.name, result)
    return result


# -- results -------------------------------------------------------------------------------------------------------


def write_results(out: Path, first: Sequence[str] = ()) -> Path:
    """Gather the records of all runs in a folder into one file, a line each; those named come first."""
    with locked(out):
        found = _records(out)
        names = [name for name in first if name in found] + [name for name in found if name not in first]
        replace_file(out / RESULTS, "".join(to_line(found[name]) for name in names).encode())
    return out / RESULTS


def _records(out: Path) -> dict[str, Result]:
    folders = (path.parent for path in sorted(out.glob(f"runs/*/{RECORD}")))
    return {folder.name: result for folder in folders if (result := read_record(folder)) is not None}


def failures(results: Sequence[Result]) -> dict[str, str]:
    """Why each of the runs failed that did.

    >>> failures([Result(run="a", label="a", recipe={}, status="failed", error="no luck")])
    {'a': 'no luck'}
    """
    return {result.run: result.error or "" for result in results if not result.done}
