"""Pieces of work that tests send to other processes: importable by name."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from reticent.executors import Tell


def squared(number: int, tell: Tell) -> int:
    tell(1, 1)
    return number * number


def failing(tell: Tell) -> None:
    raise OSError("no such luck")


def dying(folder: Path, times: int, tell: Tell) -> int:
    """Die by kill -9 so many times, then say how often that was."""
    deaths = len(list(folder.iterdir()))
    if deaths < times:
        (folder / str(deaths)).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return deaths


def waiting(sign: Path, tell: Tell) -> str:
    """End when there is a sign."""
    while not sign.exists():
        time.sleep(0.01)
    return "seen"


def environment(name: str, tell: Tell) -> tuple[str | None, str]:
    return os.environ.get(name), os.getcwd()
