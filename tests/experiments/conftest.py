"""A small comparison, run once for all tests that only look at it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reticent.experiments.compare import Compared, Comparison, compare
from reticent.experiments.job import Job
from reticent.results import Result


class Seen:
    """A watcher that remembers."""

    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []

    def began(self, job: Job) -> None:
        self.events.append(("began", job.name))

    def advanced(self, job: Job, done: int, total: int) -> None:
        self.events.append(("advanced", job.name, done, total))

    def ended(self, job: Job, result: Result) -> None:
        self.events.append(("ended", job.name, result.status))

    def names(self, kind: str) -> list[str]:
        return [event[1] for event in self.events if event[0] == kind]


@pytest.fixture
def seen() -> Seen:
    return Seen()


def small() -> Comparison:
    """Two methods, of which one cannot be run, at one budget with two seeds."""
    return Comparison(
        settings={"data": "digits", "epochs": 1.0},
        variants={"auto_s": {}, "hopeless": {"method": "dpsgd", "lr": 1e30, "max_grad_norm": -1.0}},
        epsilons=(3.0,),
        seeds=(0, 1),
    )


@pytest.fixture(scope="session")
def compared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Compared, Seen]:
    """The folder, the answer and what was seen of the small comparison."""
    out, seen = tmp_path_factory.mktemp("compared"), Seen()
    return out, compare(small(), out, processes=2, watcher=seen), seen
