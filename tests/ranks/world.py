"""Several ranks on this machine: forked processes that talk over loopback, and what each of them answers."""

from __future__ import annotations

import os
import pickle
import tempfile
import traceback
import warnings
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from reticent.inside.several import TIMEOUT

PATIENCE = 120


class Gone(Exception):  # noqa: N818 - what became of a rank
    """A rank that ended without an answer."""


def on_ranks(world: int, job: Callable[[int], Any], *, timeout: float = PATIENCE) -> list[Any]:
    """What each rank's job answers, or the exception that ended it; `Gone` for one that was killed.

    Forked, so that what a test has patched is patched there too.
    """
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forks beside threads
        context = get_context("fork")
        pipes = [context.Pipe(duplex=False) for _ in range(world)]
        started = []
        for rank, (_, end) in enumerate(pipes):
            process = context.Process(target=_rank, args=(rank, world, Path(folder) / "store", job, end, timeout))
            process.start()
            end.close()
            started.append(process)
        answers = [_answer(ear) for ear, _ in pipes]
        for process in started:
            process.join()
        return answers


def answers(world: int, job: Callable[[int], Any]) -> list[Any]:
    """What each rank's job answers; whatever went wrong in one is raised here."""
    found = on_ranks(world, job)
    for answer in found:
        if isinstance(answer, Exception):
            raise answer
    return found


def _answer(ear: Connection) -> Any:
    try:
        return pickle.loads(ear.recv_bytes())
    except EOFError:
        return Gone()


def _rank(rank: int, world: int, store: Path, job: Callable[[int], Any], end: Connection, timeout: float) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(1000 + rank)  # nothing may depend on what each rank has by chance
    os.environ[TIMEOUT] = str(timeout)
    try:
        if world > 1:
            dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
        answer = job(rank)
    except BaseException as error:
        error.add_note("".join(traceback.format_exception(error)))
        answer = error if _travels(error) else RuntimeError(f"{type(error).__name__}: {error}")
    end.send_bytes(pickle.dumps(answer))  # not `send`: torch would share memory with a process that is gone
    end.close()
    os._exit(0)  # without the goodbyes of the test process, of which this is a copy


def _travels(error: BaseException) -> bool:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return False
    return isinstance(error, Exception)


def same(values: Sequence[Any]) -> Any:
    """The one value that all ranks have."""
    assert all(value == values[0] for value in values), values
    return values[0]
