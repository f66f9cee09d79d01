"""Whoever charges at the same time, the cap holds: in SQLite and in a real PostgreSQL."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

import pytest
from spenders import NOISE, Careless, reopened
from tests import quick

from reticent.accounting import Gaussian
from reticent.accounting.renyi.conversions import overhead
from reticent.accounting.spending import spending_of
from reticent.budgets import DatasetBudget, DatasetLedger
from reticent.errors import BudgetSpent

PROCESSES, RUNS, ROOM = 8, 200, 37


def room_for(count: int, place: str, name: str) -> DatasetBudget:
    """A dataset whose cap covers so many charges of the test, and not one more."""
    order, delta = 8.0, 1e-5
    cost = spending_of([Gaussian(NOISE)]).divergence(order)
    epsilon = (count + 0.5) * cost + float(overhead(order, delta))
    return DatasetLedger(place).create(name, epsilon=epsilon, delta=delta, order=order)


def test_eight_processes_and_two_hundred_runs_overspend_nothing(place: str) -> None:
    dataset = room_for(ROOM, place, "many")
    program = str(Path(__file__).parent / "spenders.py")
    words = [place, "many", str(PROCESSES), str(RUNS // PROCESSES)]
    said = quick.run(quick.SCRIPT, program, *words)
    assert said.returncode == 0, said.stderr
    passed = [int(word) for word in said.stdout.split()]
    assert len(passed) == PROCESSES
    assert sum(passed) == ROOM  # every one that fits, and none more
    assert len(dataset.history()) == ROOM
    assert dataset.share() <= 1


def overspent(dataset: DatasetBudget, monkeypatch: pytest.MonkeyPatch, patience: float) -> bool:
    """Two runs ask at once for what is there only once, and each waits after its look for the other to have looked."""
    barrier, right = threading.Barrier(2), DatasetBudget._refuse_beyond

    def look(self: DatasetBudget, spent: float, spending: object) -> None:
        right(self, spent, spending)  # type: ignore[arg-type]
        with suppress(threading.BrokenBarrierError):  # the other cannot look before this one has charged
            barrier.wait(patience)

    def ask() -> None:
        with suppress(BudgetSpent):
            dataset.charge(Gaussian(NOISE), note="test")

    monkeypatch.setattr(DatasetBudget, "_refuse_beyond", look)
    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return dataset.share() > 1


def test_a_look_and_its_charge_are_one(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = room_for(1, place, "one")
    assert not overspent(dataset, monkeypatch, patience=0.5)
    assert len(dataset.history()) == 1


def test_a_build_that_takes_them_apart_is_caught(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = room_for(1, place, "apart")
    assert overspent(reopened(dataset, Careless(place)), monkeypatch, patience=60)
