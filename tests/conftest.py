"""Shared by all tests: one thread, fixed seeds, a tiny task, and a small comparison that is run once."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import settings
from tests import quick
from torch import Tensor

from reticent.audits import verdict
from reticent.experiments.compare import Compared, Comparison, compare
from reticent.experiments.job import Job
from reticent.results import Result

# Some virtual machines name instructions for bfloat16 that they lack: torch fails then, in float32 afterwards too.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE")
# A loaded machine must not turn a property red: nothing here is about time.
settings.register_profile("reticent", deadline=None)
settings.load_profile("reticent")
quick.load_everything()
gc.disable()  # what is imported and collected stays: to look through it again and again takes seconds


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def _calm() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)


@pytest.fixture
def blobs() -> tuple[Tensor, Tensor]:
    """Two clouds of 100 points each in four dimensions, three apart."""
    rng = torch.Generator().manual_seed(1)
    y = torch.arange(200) % 2
    return torch.randn(200, 4, generator=rng) + 3.0 * y[:, None], y


@pytest.fixture
def one_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    """An audit asks the quickest of the probes alone: that it asks all, and they find what they must, is not its point.

    That is tested in tests/audits/test_verdict.py, in tests/broken, and by the other audits of tests/cli.
    """
    monkeypatch.setattr(verdict, "PROBES", {"ledger": verdict.PROBES["ledger"]})


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
