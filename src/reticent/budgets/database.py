"""The database of a ledger: an SQLite file, or PostgreSQL by its URL; one writer at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from platformdirs import user_data_path
from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, make_url, text, update
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.pool import NullPool

from reticent.budgets.schema import VERSION, datasets, metadata
from reticent.errors import SettingError

VARIABLE = "RETICENT_LEDGER"
PATIENCE = 60.0
"""Seconds to wait for another writer of an SQLite file; each of them takes milliseconds."""
MAKING = 0x72657469
"""The advisory lock under which the tables are made in PostgreSQL."""


def place_of(option: str | Path | None = None) -> str:
    """Where the ledger is: the option, else `$RETICENT_LEDGER`, else a file in the platform's data folder.

    >>> place_of("here.sqlite")
    'here.sqlite'
    """
    return str(option or os.environ.get(VARIABLE) or user_data_path("reticent", appauthor=False) / "ledger.sqlite")


class Database:
    """Transactions that follow one another, however many programs ask for them at the same time."""

    def __init__(self, place: str):
        self.url = _url(place)
        self._engine = _engine(self.url)

    def __str__(self) -> str:
        return self.url.database or "" if self.is_file else self.url.render_as_string(hide_password=True)

    @property
    def is_file(self) -> bool:
        """Whether it is an SQLite file."""
        return self.url.get_backend_name() == "sqlite"

    def make(self) -> None:
        """Make the tables, and the file, if they are not there."""
        if self.is_file:
            path = Path(self.url.database or "")
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise SettingError(f"cannot make the folder of the ledger {path}: {error.strerror}") from error
        with self._told(), self._engine.begin() as connection:
            self._alone(connection)
            metadata.create_all(connection)

    def _alone(self, connection: Connection) -> None:
        """Two programs may come first at once; an SQLite file has one writer anyway."""
        if not self.is_file:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MAKING})

    @property
    def made(self) -> bool:
        """Whether there are tables."""
        if self.is_file and not Path(self.url.database or "").exists():
            return False  # to look into it would make it
        with self._told(), self._engine.begin() as connection:
            return self._engine.dialect.has_table(connection, "reticent_charges")

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """All of the block or nothing, and on disk when it ends.

        In SQLite no other one begins before. In PostgreSQL each statement sees what was committed before it, so that
        whoever has locked the row of a dataset sees all of its charges.
        """
        with self._told(), self._engine.begin() as connection:
            if not self.is_file:
                connection.execute(text("SET LOCAL synchronous_commit TO on"))
            yield connection

    def upgrade(self) -> None:
        """Bring tables of version 1, whose datasets were all of single examples, to the layout of today."""
        with self.transaction() as connection:
            self._alone(connection)
            if all(column["name"] != "unit" for column in inspect(connection).get_columns(datasets.name)):
                connection.execute(
                    text(f"ALTER TABLE {datasets.name} ADD COLUMN unit VARCHAR(20) NOT NULL DEFAULT 'example'")
                )
            connection.execute(update(datasets).where(datasets.c.version < VERSION).values(version=VERSION))

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            raise SettingError(
                f"the ledger {self} cannot be used, and nothing was charged: {str(error.orig).strip()}. Mend it, or "
                f"give another one (--db, --ledger, ${VARIABLE})"
            ) from error


def _url(place: str) -> URL:
    if "://" not in place:
        return URL.create("sqlite", database=str(Path(place).expanduser().absolute()))
    try:
        url = make_url(place)
    except ArgumentError as error:
        raise SettingError("this is no URL of a database: give the path of a file, or postgresql://...") from error
    if url.drivername in ("postgresql", "postgres"):
        url = url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:"):
        raise SettingError("a ledger must outlive the program: give the path of a file")
    return url


def _engine(url: URL) -> Engine:
    """No pool: a connection lasts as long as its transaction, and none is shared with a forked process."""
    options: dict[str, Any] = {"poolclass": NullPool}
    try:
        match url.get_backend_name():
            case "sqlite":
                engine = create_engine(url, connect_args={"timeout": PATIENCE}, **options)
                _begin_at_once(engine)
            case "postgresql":
                engine = create_engine(url, isolation_level="READ COMMITTED", **options)
            case other:
                raise SettingError(f"a ledger lives in SQLite or PostgreSQL, not in {other}")
    except NoSuchModuleError as error:
        raise SettingError(f"{url.drivername} is no database known here: take SQLite or PostgreSQL") from error
    except ModuleNotFoundError as error:
        raise SettingError("PostgreSQL needs its driver: pip install 'reticent[postgres]'") from error
    return engine


def _begin_at_once(engine: Engine) -> None:
    """Take the write lock when a transaction begins; the driver would begin it at the first change, after the look."""

    @event.listens_for(engine, "connect")
    def _(connection: Any, _record: object) -> None:
        connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def _(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
