"""Worlds: processes that make runs together when they are told to, and say what their rounds took."""

from __future__ import annotations

import multiprocessing
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor

import reticent as rt
from reticent.executors.parents import end_with_parent
from reticent.inside.several import Several


@dataclass(frozen=True)
class Took:
    """What a round took: seconds until all were done, seconds of processors, bytes sent by a rank and held by one."""

    wall: float
    busiest: float
    """Of the process that worked most."""
    together: float
    """Of all processes."""
    sent: float
    held: float
    """The most in these rounds, beyond what the process had before the run was made."""


@dataclass(frozen=True)
class _Used:
    """What one process used."""

    seconds: float
    sent: float
    held: float


class World:
    """So many processes; whoever measures several worlds lets them take turns."""

    def __init__(self, ears: list[Connection]):
        self._ears = ears

    def make(self, make: Callable[..., rt.Run], *said: Any) -> None:
        """Let every rank make this run, in the place of the one before."""
        self._asked((make, said))

    def go(self, rounds: int) -> Took:
        """Do so many rounds of it."""
        start = time.perf_counter()
        used = self._asked(rounds)
        wall, times = (time.perf_counter() - start) / rounds, [one.seconds / rounds for one in used]
        sent, held = max(one.sent for one in used) / rounds, max(one.held for one in used)
        return Took(wall, max(times), sum(times), sent, held)

    def _asked(self, what: Any) -> list[_Used]:
        for ear in self._ears:
            ear.send(what)
        said = [ear.recv() for ear in self._ears]
        for one in said:
            if isinstance(one, str):
                raise RuntimeError(one)
        return said


@contextmanager
def world(ranks: int, threads: int = 1) -> Iterator[World]:
    """So many processes of so many threads; forked, so whoever asks for them must not have calculated on threads."""
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        pipes = [context.Pipe() for _ in range(ranks)]
        for rank, (_, end) in enumerate(pipes):
            context.Process(target=_rank, args=(rank, ranks, threads, Path(folder) / "store", end), daemon=True).start()
            end.close()  # so that the end of a process is heard
        ears = [ear for ear, _ in pipes]
        yield World(ears)
        for ear in ears:
            ear.send(0)
        for ear in ears:
            ear.recv()


def _rank(rank: int, ranks: int, threads: int, store: Path, end: Connection) -> None:
    end_with_parent()
    torch.set_num_threads(threads)
    if ranks > 1:
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
    sent, run, before = _counted(), cast("rt.Run", None), 0
    while asked := end.recv():
        start, sent[0] = time.process_time(), 0.0
        try:
            if isinstance(asked, int):
                Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
                for _ in range(asked):
                    run.step()
            else:
                torch.manual_seed(0)
                before = _memory("RssAnon")
                run = asked[0](*asked[1])
            end.send(_Used(time.process_time() - start, sent[0], _memory("VmHWM") - _memory("RssFile") - before))
        except Exception:
            end.send(traceback.format_exc())
    if ranks > 1:
        dist.destroy_process_group()
    end.send(None)


def _counted() -> list[float]:
    """Bytes of tensors that this rank sends from now on: to every other a row, or the same to all, by way of all."""
    sent, swapped, gathered = [0.0], Several.swapped, Several.gathered

    def swap(self: Several, rows: Tensor) -> Tensor:
        sent[0] += rows.nbytes * (self.world - 1) / self.world
        return swapped(self, rows)

    def gather(self: Several, row: Tensor) -> Tensor:
        sent[0] += row.nbytes * (self.world - 1)
        return gathered(self, row)

    Several.swapped, Several.gathered = swap, gather  # type: ignore[method-assign]
    return sent


def _memory(name: str) -> int:
    """Bytes of this process, as the system counts them."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))
