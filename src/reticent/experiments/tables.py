"""Tables to run again: what a paper printed, and the settings behind it, read from an experiment file."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeVar

from reticent.errors import SettingError, UnknownName
from reticent.experiments.recipe import Recipe, read_recipe

Settings = dict[str, Any]
T = TypeVar("T")
ABOUT_A_ROW = ("name", "columns", "printed", "minutes", "ours", "as_claimed")
"""The keys of a row that are not settings of its runs."""


@dataclass(frozen=True, kw_only=True)
class TableCell:
    """One figure of a table: how it is computed here, and what the paper printed."""

    row: str
    column: str
    recipe: Recipe
    """At the epsilon that heads the column, which we prove (or without one, where the paper names none)."""
    as_claimed: Recipe | None
    """With the noise and the length that the paper used, whose epsilon it claimed; None where it does not say."""
    printed: float | None
    """The paper's accuracy in percent."""
    minutes: float | None
    """About how long a run takes on one core."""
    ours: tuple[str, ...]
    """Settings that the paper does not state: these are our choice."""

    @property
    def name(self) -> str:
        """What `--cells` and the folder of a run call it."""
        return f"{self.row}-{self.column}" if self.column else self.row


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table (or figure) of a paper."""

    number: str
    title: str
    runs: int | None
    """How many runs the paper's figures are means of, if it says."""
    notes: tuple[str, ...]
    cells: tuple[TableCell, ...]

    def chosen(self, patterns: str | None) -> tuple[TableCell, ...]:
        """The cells that any of the patterns (by commas, with * and ?) names; all of them if none is given."""
        if patterns is None:
            return self.cells
        found: dict[str, TableCell] = {}
        for pattern in (part.strip() for part in patterns.split(",") if part.strip()):
            some = {cell.name: cell for cell in self.cells if fnmatch(cell.name, pattern)}
            if not some:
                raise UnknownName("cell", pattern, [cell.name for cell in self.cells])
            found |= some
        if not found:
            raise SettingError("no cell is named: give names by commas, with * and ?, or leave --cells out")
        return tuple(found.values())


def papers() -> list[str]:
    """The papers whose tables come with the package.

    >>> "dpsur" in papers()
    True
    """
    return sorted(path.name.removesuffix(".toml") for path in _folder().iterdir() if path.name.endswith(".toml"))


def read_tables(paper: str) -> tuple[str, list[Table]]:
    """The title and the tables of a paper by its name, or of an experiment file by its path.

    >>> title, tables = read_tables("dpsur")
    >>> tables[0].number, tables[0].cells[0].printed
    ('2', 97.93)
    """
    source: Traversable | Path = Path(paper) if paper.endswith(".toml") else _folder() / f"{paper}.toml"
    if not source.is_file():
        raise UnknownName("paper", paper, papers())
    try:
        values = tomllib.loads(source.read_text())
    except tomllib.TOMLDecodeError as error:
        raise SettingError(f"{source} is not valid TOML: {error}") from error
    try:
        return values["title"], [_table(number, table) for number, table in values["table"].items()]
    except (KeyError, IndexError) as error:
        missing = f"{error} is missing" if isinstance(error, KeyError) else "a list has fewer entries than columns"
        raise SettingError(f"{source} is not an experiment file: {missing} (see docs/reproduce.md)") from error


def find_table(paper: str, number: str) -> Table:
    """One table of a paper.

    >>> len(find_table("dpsur", "2").chosen("mnist-dpsur-*"))
    4
    """
    tables = {table.number: table for table in read_tables(paper)[1]}
    if number not in tables:
        raise UnknownName("table", number, list(tables))
    return tables[number]


def _folder() -> Traversable:
    return files("reticent.experiments") / "papers"


def _table(number: str, values: Settings) -> Table:
    shared = values.get("shared", {})
    cells = [cell for row in values["row"] for cell in _cells(shared | row)]
    return Table(
        number=number,
        title=values["title"],
        runs=values.get("runs"),
        notes=tuple(values.get("notes", [])),
        cells=tuple(cells),
    )


def _cells(row: Settings) -> list[TableCell]:
    """The cells of a row: where a setting is a list, each column has its own."""
    settings = {name: value for name, value in row.items() if name not in ABOUT_A_ROW}
    columns = row.get("columns") or [f"eps{epsilon:g}" for epsilon in _list(row.get("epsilon"))] or [""]
    cells = []
    for number, column in enumerate(columns):
        own = _at(settings, number)
        claimed = row.get("as_claimed")
        cells.append(
            TableCell(
                row=row["name"],
                column=column,
                recipe=read_recipe(None, own),
                as_claimed=read_recipe(None, own | {"epsilon": None} | _at(claimed, number)) if claimed else None,
                printed=_one(row.get("printed"), number),
                minutes=_one(row.get("minutes"), number),
                ours=tuple(row.get("ours", [])),
            )
        )
    return cells


def _list(value: T | list[T] | None) -> list[T]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _at(settings: Settings, number: int) -> Settings:
    return {name: _one(value, number) for name, value in settings.items()}


def _one(value: T | list[T], number: int) -> T:
    return value[number] if isinstance(value, list) else value
