"""The ledger of datasets: where their budgets are kept, for all runs and all people."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import insert, select
from sqlalchemy.exc import IntegrityError

from reticent.accounting import Budget, RenyiFilter
from reticent.accounting.adjacency import check_adjacency, check_unit
from reticent.accounting.budget import most_concentrated
from reticent.budgets.budget import DatasetBudget, DatasetCharge, now, who
from reticent.budgets.database import Database, place_of
from reticent.budgets.schema import VERSION, datasets
from reticent.errors import SettingError, UnknownName


class DatasetLedger:
    """Budgets by name, in an SQLite file or a PostgreSQL database; `$RETICENT_LEDGER` says where, if nothing else does.

    >>> from tempfile import mkdtemp
    >>> from reticent.accounting import Gaussian
    >>> ledger = DatasetLedger(Path(mkdtemp()) / "ledger.sqlite")
    >>> patients = ledger.create("patients", epsilon=8.0, delta=1e-5)
    >>> _ = patients.charge(Gaussian(2.0), note="mean age, published in May")
    >>> round(ledger["patients"].share(), 3), list(ledger)
    (0.102, ['patients'])
    """

    def __init__(self, place: str | Path | None = None):
        self._database = Database(place_of(place))

    def create(
        self,
        name: str,
        *,
        epsilon: float,
        delta: float,
        adjacency: str = "add-or-remove",
        unit: str = "example",
        order: float | None = None,
    ) -> DatasetBudget:
        """A new dataset, with a cap that never changes: one that moves with what was seen would promise nothing.

        With `unit="person"` it is for runs with `groups`. `order` is the one order at which all runs are counted; if
        not said, the one at which the cap affords the most Gaussian noise. Where few runs with large epsilons are
        planned, a lower one affords more.
        """
        cap = Budget(epsilon, delta, "rdp", check_adjacency(adjacency))
        chosen = float(most_concentrated(cap)[0] if order is None else order)
        RenyiFilter(chosen, epsilon, delta, cap.adjacency)  # refuses an order that leaves nothing
        if not name or len(name) > 200 or not name.isprintable():
            raise SettingError("a dataset needs a name of up to 200 letters")
        row = {"name": name, "version": VERSION, "epsilon": epsilon, "delta": delta, "adjacency": cap.adjacency}
        row["unit"] = check_unit(unit)
        self._database.make()
        self._database.upgrade()
        with self._database.transaction() as connection:
            try:
                connection.execute(insert(datasets).values(**row, renyi_order=chosen, who=who(), at=now()))
            except IntegrityError as error:
                raise SettingError(
                    f"there is a dataset {name!r} already, and its cap is fixed: take it as it is, or another name"
                ) from error
        return self[name]

    def __getitem__(self, name: str) -> DatasetBudget:
        known = self._budgets()
        if not known:
            raise SettingError(f"{self._database} holds no dataset: `reticent ledger create {name}` makes one")
        if name not in known:
            raise UnknownName("dataset", name, known)
        return known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._budgets())

    def __len__(self) -> int:
        return len(self._budgets())

    def settle(self, folder: str | Path) -> tuple[DatasetBudget, DatasetCharge]:
        """Charge the run of a folder for what its ledger shows instead of for its plan; it can not go on after that."""
        from reticent.budgets.settling import settle  # it reads checkpoints, for which torch is loaded

        return settle(self, Path(folder))

    def _budgets(self) -> dict[str, DatasetBudget]:
        if not self._database.made:
            return {}
        with self._database.transaction() as connection:
            versions = connection.execute(select(datasets.c.name, datasets.c.version)).all()
        for row in versions:
            if row.version > VERSION:
                raise SettingError(f"dataset {row.name!r} was made by a newer Reticent: update this one")
        if any(row.version < VERSION for row in versions):
            self._database.upgrade()
        with self._database.transaction() as connection:
            rows = connection.execute(select(datasets).order_by(datasets.c.name)).all()
        return {
            row.name: DatasetBudget(
                row.name,
                Budget(row.epsilon, row.delta, "rdp", check_adjacency(row.adjacency)),
                row.renyi_order,
                self._database,
                check_unit(row.unit),
            )
            for row in rows
        }
