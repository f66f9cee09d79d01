"""Kills: kill -9 of workers, of their parent and of the server that forks them, in the middle of a comparison."""

from __future__ import annotations

import json
import os
import random
import signal
import tempfile
import time
from pathlib import Path

from reticent.experiments.job import Job
from reticent.experiments.recipe import Recipe
from reticent.experiments.sweep import sweep
from reticent.results import Result
from soak.tally import Tally

WHOM = ("worker", "parent", "server")


class _Silent:
    def began(self, job: Job) -> None: ...
    def advanced(self, job: Job, done: int, total: int) -> None: ...
    def ended(self, job: Job, result: Result) -> None: ...


def jobs() -> list[Job]:
    """Three small runs."""
    return [
        Job(name=f"run{seed}", label="dpsgd", recipe=Recipe(data="digits", epsilon=3.0, epochs=20.0, seed=seed))
        for seed in range(3)
    ]


def do(out: Path) -> None:
    """The comparison that is killed."""
    sweep(jobs(), out, processes=2, watcher=_Silent())


def _essence(out: Path) -> list[object]:
    found = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    rounds = [(out / "runs" / job.name / "rounds.jsonl").read_text().count("\n") for job in jobs()]
    ledgers = [(out / "runs" / job.name / "ledger.jsonl").read_bytes() for job in jobs()]
    return [*((one["run"], one["status"], one["accuracy"], one["epsilon"]) for one in found), rounds, ledgers]


class _Parent:
    """The process of a comparison: forked, since to import everything anew takes longer than the comparison."""

    def __init__(self, out: Path):
        self.code: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            try:
                do(out)
            except BaseException:
                os._exit(1)
            os._exit(0)

    def poll(self) -> int | None:
        """Its exit code, if it is over."""
        if self.code is None and (found := os.waitpid(self.pid, os.WNOHANG))[0]:
            self.code = os.waitstatus_to_exitcode(found[1])
        return self.code

    def wait(self) -> int:
        """Its exit code, when it is over."""
        while self.poll() is None:
            time.sleep(0.02)
        assert self.code is not None
        return self.code


def _children(parent: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(path.parent.name))
    return found


def _victim(parent: int, whom: str) -> int | None:
    """The process to kill: of the parent's children, the server is the one that has children."""
    if whom == "parent":
        return parent
    servers = [child for child in _children(parent) if whom == "server" or _children(child)]
    if whom == "server":
        return next((child for child in servers if _children(child)), None)
    workers = [worker for server in servers for worker in _children(server)]
    return workers[0] if workers else None


def soak_kills(each: int, *, seed: int = 0) -> Tally:
    """So many kills of each kind; afterwards the same command goes on, and all is as without."""
    tally, rng = Tally("kills"), random.Random(seed)
    with tempfile.TemporaryDirectory() as place:
        whole = Path(place) / "whole"
        _Parent(whole).wait()
        expected = _essence(whole)
        for number in range(each):
            for whom in WHOM:
                tally.add(whom, _case(Path(place) / f"{whom}{number}", whom, rng, expected))
    return tally


def _case(out: Path, whom: str, rng: random.Random, expected: list[object]) -> str | None:
    running = _Parent(out)
    while running.poll() is None and not list(out.glob("runs/*/ledger.jsonl")):
        time.sleep(0.05)
    time.sleep(rng.random() * 2)
    victim = _victim(running.pid, whom)
    if victim is not None and running.poll() is None:
        os.kill(victim, signal.SIGKILL)
    running.wait()
    if _Parent(out).wait() != 0:
        return "the same command did not go on"
    found = _essence(out)
    return (
        None if found == expected else f"{[one for one, other in zip(found, expected, strict=False) if one != other]}"
    )
