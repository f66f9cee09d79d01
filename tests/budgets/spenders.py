"""Many programs that charge one dataset at the same time: `python spenders.py PLACE DATASET PROCESSES TRIES`.

Also a database with a planted mistake: the look and the charge are transactions of their own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, create_engine
from sqlalchemy.pool import NullPool

from reticent.accounting import Gaussian
from reticent.budgets import DatasetBudget, DatasetLedger
from reticent.budgets.database import Database
from reticent.errors import BudgetSpent

NOISE = 2.0


class Careless(Database):
    """The mistake: each statement is a transaction of its own, and no row is locked."""

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        engine = create_engine(self.url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
        with self._told(), engine.connect() as connection:
            yield connection


def spend(place: str, name: str, tries: int) -> int:
    """How many of so many charges were let through."""
    dataset, passed = DatasetLedger(place)[name], 0
    for _ in range(tries):
        try:
            dataset.charge(Gaussian(NOISE), note="test")
            passed += 1
        except BudgetSpent:
            pass
    return passed


def fork(count: int, work: object) -> list[int]:
    """Run a function in so many processes at once; the exit codes say what came of it."""
    pids = []
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            os._exit(work())  # type: ignore[operator]
        pids.append(pid)
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]


def reopened(dataset: DatasetBudget, database: Database) -> DatasetBudget:
    return DatasetBudget(dataset.name, dataset.cap, dataset.order, database)


if __name__ == "__main__":
    where, what, processes, each = sys.argv[1:5]
    print(*fork(int(processes), lambda: spend(where, what, int(each))))
