"""Programs in real processes that begin at once: forked from a server that has loaded torch and Reticent already.

What is tested is that they are killed, refused or resumed, not that a Python can load its modules, which takes seconds.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import IO, Any

COMMAND = "from reticent.cli import main; main()"
SCRIPT = (
    "import os, runpy, sys; del sys.argv[0]; sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))\n"
    "runpy.run_path(sys.argv[0], run_name='__main__')"
)
MODULE = "import runpy, sys; del sys.argv[0]; runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
ALONE = "import sys\nfor name in [*sys.modules]:\n    if name.split('.')[0] == 'reticent': sys.modules[name] = None\n"
"""Before a program that must do without Reticent: whoever imports it fails."""
LOADED = ("torch._dynamo", "sklearn.datasets", "reticent.cli", "reticent.experiments.sweep", "reticent.tuning")


def load_everything() -> None:
    """Whoever first asks for the server of forks, it has loaded what all need: there is one for all of a process."""
    right = forkserver.set_forkserver_preload

    def load(names: list[str]) -> None:
        right([*names, *LOADED])

    forkserver.set_forkserver_preload = load


def run(program: str, *words: object, where: Path | None = None, given: str = "") -> subprocess.CompletedProcess[str]:
    """What `python -c program words` says and how it ends."""
    with tempfile.TemporaryFile("w+") as asks, tempfile.TemporaryFile("w+") as says, tempfile.TemporaryFile("w+") as no:
        asks.write(given)
        asks.seek(0)
        begun = begin(program, *words, where=where, files=(asks, says, no))
        begun.join()
        says.seek(0)
        no.seek(0)
        assert begun.exitcode is not None
        return subprocess.CompletedProcess(program, begun.exitcode, says.read(), no.read())


def begin(program: str, *words: object, where: Path | None = None, files: tuple[IO[Any], ...]) -> BaseProcess:
    """Begin `python -c program words` with these files for what it is told, says and complains of."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([])
    ends = [Connection(os.dup(file.fileno()), readable=not number) for number, file in enumerate(files)]
    told = ([str(word) for word in words], str(where or Path.cwd()), dict(os.environ))
    process = context.Process(target=_serve, args=(program, *told, ends))
    process.start()
    for end in ends:
        end.close()
    return process


def _serve(program: str, words: list[str], where: str, environment: dict[str, str], ends: list[Connection]) -> None:
    for number, end in enumerate(ends):
        os.dup2(end.fileno(), number)
        end.close()
    sys.stdin = os.fdopen(0, closefd=False)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(where)
    sys.argv = ["-c", *words]
    exec(compile(program, "<program>", "exec"), {"__name__": "__main__"})
