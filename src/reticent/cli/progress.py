"""Progress of a run: a bar on a terminal, a line now and then elsewhere; only public numbers."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reticent.run import Run, Step

SECONDS_BETWEEN_LINES = 10.0
SECONDS_BETWEEN_FIGURES = 0.5


@contextmanager
def progress(title: str) -> Iterator[Callable[[Run, Step], None]]:
    """Something to call after each round; everything goes to stderr, so that stdout stays for the answer."""
    if sys.stderr.isatty():
        with _bar(title) as tell:
            yield tell
    else:
        yield _lines(title)


def _spent(run: Run) -> str:
    from reticent.accounting.guarantee import round_up

    epsilon = run.spent()
    return (
        f"epsilon {round_up(epsilon)} if exactly this many rounds had been planned"
        if epsilon < float("inf")
        else "no epsilon"
    )


def _lines(title: str) -> Callable[[Run, Step], None]:
    last = time.monotonic()

    def tell(run: Run, step: Step) -> None:
        nonlocal last
        if time.monotonic() - last >= SECONDS_BETWEEN_LINES or step.number == len(run):
            last = time.monotonic()
            print(f"{title}: round {step.number} of {len(run)}, {_spent(run)}", file=sys.stderr, flush=True)

    return tell


@contextmanager
def _bar(title: str) -> Iterator[Callable[[Run, Step], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn(title),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[spent]}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        row, told = bar.add_task(title, spent=""), 0.0

        def tell(run: Run, step: Step) -> None:
            nonlocal told
            bar.update(row, total=len(run), completed=step.number)
            if time.monotonic() - told >= SECONDS_BETWEEN_FIGURES or step.number == len(run):
                told = time.monotonic()
                bar.update(row, spent=_spent(run))

        yield tell
