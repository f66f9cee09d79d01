"""A sweep: many jobs over a few processes; what is done stays done, and one failure stops nobody else."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Protocol

import torch

from reticent.errors import SettingError
from reticent.experiments.job import Job, claim, failure, perform, store_record
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


@dataclass(eq=False)
class _Worker:
    job: Job
    process: BaseProcess
    pipe: Connection
    result: Result | None = None


def sweep(
    jobs: Sequence[Job],
    out: Path,
    *,
    processes: int,
    watcher: Watcher,
    more: Callable[[], bool] = lambda: True,
) -> list[Result]:
    """Do all jobs, each in a process and a folder of its own; results.jsonl is kept up to date all the while.

    Promise: after any crash, the same call goes on where it stopped: finished runs are not run again, unfinished ones
    resume, failed ones are tried again. As soon as `more` says no, nothing is begun any more: what is at work is
    brought to its end, and only what has ended is told.
    """
    _refuse_impossible(jobs, out, processes)
    results = {}
    for job in jobs:
        if (before := read_record(out / "runs" / job.name)) is not None and job.finished(before):
            results[job.name] = before
            watcher.ended(job, before)
    waiting = [job for job in jobs if job.name not in results]
    at_work: list[_Worker] = []
    try:
        while waiting or at_work:
            while waiting and len(at_work) < processes and more():
                at_work.append(_start(waiting.pop(0), out))
                watcher.began(at_work[-1].job)
            if not at_work:
                break
            for worker in _ended(at_work, watcher):
                at_work.remove(worker)
                results[worker.job.name] = _settled(worker, out)
                write_results(out, [job.name for job in jobs])
                watcher.ended(worker.job, results[worker.job.name])
    finally:
        for worker in at_work:
            worker.process.kill()
    write_results(out, [job.name for job in jobs])
    return [results[job.name] for job in jobs if job.name in results]


def _refuse_impossible(jobs: Sequence[Job], out: Path, processes: int) -> None:
    refuse_several("a sweep")
    if processes < 1:
        raise SettingError(f"a sweep needs at least one process, not {processes}")
    if len({job.name for job in jobs}) < len(jobs):
        raise SettingError("two runs of the sweep have the same name")
    for job in jobs:
        with locked(out):  # somebody else may be beginning the same comparison
            claim(job, out / "runs" / job.name)
    _records(out)  # a damaged one is told now, not when the first run is over


# -- one process ---------------------------------------------------------------------------------------------------


def _start(job: Job, out: Path) -> _Worker:
    # Forked from a server that has loaded everything once: a process each costs milliseconds, not seconds.
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["torch._dynamo", "reticent.experiments.sweep"])
    here, there = processes.Pipe(duplex=False)
    process = processes.Process(target=_work, args=(job, out / "runs" / job.name, there), name=job.name)
    process.start()
    there.close()
    return _Worker(job, process, here)


def _work(job: Job, folder: Path, pipe: Connection) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl-C reaches everybody in the terminal: the parent decides
    torch.set_num_threads(1)  # always: the last digits, and so a later resume, depend on how many there are

    def tell(done: int, total: int) -> None:
        with suppress(BrokenPipeError):  # the parent is gone, and so will this process be
            pipe.send((done, total))

    with locked(folder):
        result = perform(job, folder, tell)
    pipe.send(result)


def _end_with_parent() -> None:
    """A run without anybody to report to would race with the one that resumes it."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


# -- watching them -------------------------------------------------------------------------------------------------


def _ended(at_work: list[_Worker], watcher: Watcher) -> list[_Worker]:
    """Pass on what the processes say until one or more of them are over."""
    over = []
    for ready in wait([worker.pipe for worker in at_work]):
        worker = next(worker for worker in at_work if worker.pipe is ready)
        try:
            said = worker.pipe.recv()
        except EOFError:
            over.append(worker)
            continue
        if isinstance(said, Result):
            worker.result = said
        else:
            watcher.advanced(worker.job, *said)
    return over


def _settled(worker: _Worker, out: Path) -> Result:
    """What came of a process that is over; one that died without a word gets a record too."""
    worker.process.join()
    worker.pipe.close()
    if worker.result is not None:
        return worker.result
    code = worker.process.exitcode or 0
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    why = " (out of memory?)" if code == -signal.SIGKILL else ""
    result = failure(worker.job, f"its process ended with {how}{why}; the same command goes on with it")
    store_record(out / "runs" / worker.job.name, result)
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
