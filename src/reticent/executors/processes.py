"""The processes of this machine."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from reticent.errors import SettingError
from reticent.executors.doing import Answered, done
from reticent.executors.executor import Advanced, Ended, Work
from reticent.executors.parents import end_with_parent


@dataclass(eq=False)
class _Worker:
    name: str
    process: BaseProcess
    pipe: Connection
    answered: Answered | None = None


@dataclass(eq=False)
class Processes:
    """Each piece of work in a process of its own, that ends with this one."""

    at_once: int
    _at_work: list[_Worker] = field(default_factory=list, repr=False)

    def begin(self, name: str, work: Work) -> None:
        """In a new process, forked from a server that has loaded everything once: milliseconds, not seconds."""
        processes = multiprocessing.get_context("forkserver")
        called = work.func if isinstance(work, partial) else work
        processes.set_forkserver_preload(["torch._dynamo", called.__module__])
        here, there = processes.Pipe(duplex=False)
        process = processes.Process(target=_serve, args=(_packed(work), there), name=name)
        process.start()
        there.close()
        self._at_work.append(_Worker(name, process, here))

    def ended(self, advanced: Advanced) -> list[Ended]:
        """Pass on what the processes say until one or more of them are over."""
        over: list[Ended] = []
        while not over:
            for ready in wait([worker.pipe for worker in self._at_work]):
                worker = next(worker for worker in self._at_work if worker.pipe is ready)
                try:
                    said = worker.pipe.recv()
                except EOFError:
                    self._at_work.remove(worker)
                    over.append(_settled(worker))
                    continue
                if isinstance(said, bytes):
                    worker.answered = pickle.loads(said)
                else:
                    advanced(worker.name, *said)
        return over

    def stop(self) -> None:
        """Kill what is at work."""
        for worker in self._at_work:
            worker.process.kill()


def _packed(work: Work) -> bytes:
    """By plain copying: tensors would otherwise be moved to memory that both processes share."""
    try:
        return pickle.dumps(work)
    except (AttributeError, pickle.PicklingError, TypeError) as error:
        raise SettingError(
            f"this cannot be sent to another process ({error}): define functions and classes in a module and not "
            "within others, take no lambda, or do one at a time"
        ) from error


def _serve(packed: bytes, pipe: Connection) -> None:
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl-C reaches everybody in the terminal: the parent decides

    def tell(count: int, total: int) -> None:
        with suppress(BrokenPipeError):  # the parent is gone, and so will this process be
            pipe.send((count, total))

    pipe.send(done(lambda tell: pickle.loads(packed)(tell), tell))


def _settled(worker: _Worker) -> Ended:
    """What came of a process that is over, also of one that died without a word."""
    worker.process.join()
    worker.pipe.close()
    if worker.answered is not None:
        return Ended(worker.name, worker.answered.answer, worker.answered.error)
    code = worker.process.exitcode or 0
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    why = " (out of memory?)" if code == -signal.SIGKILL else ""
    return Ended(worker.name, error=f"its process ended with {how}{why}; the same command goes on with it")
