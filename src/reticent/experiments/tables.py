"""Tables and figures to run again: what a paper printed, and the settings behind it, read from an experiment file."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatch
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Literal

from reticent.errors import SettingError, UnknownName
from reticent.experiments.cells import Settings, TableCell, cells_of
from reticent.reading import read_toml

TableKind = Literal["table", "figure"]
KINDS: tuple[TableKind, ...] = ("table", "figure")


@dataclass(frozen=True)
class LeftOut:
    """Printed numbers that have no entry, and why."""

    what: str
    figures: int
    why: str


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table or figure of a paper."""

    kind: TableKind = "table"
    number: str
    title: str
    runs: int | None = None
    """How many runs the paper's figures are means of, if it says."""
    notes: tuple[str, ...] = ()
    cells: tuple[TableCell, ...]
    figures: int | None = None
    """How many numbers the paper prints there; None: nobody has counted."""
    left_out: tuple[LeftOut, ...] = ()

    @property
    def entered(self) -> int:
        """How many of the printed numbers have an entry; what stands beside another row counts there."""
        return sum(len(cell.printed) for cell in self.cells if cell.beside is None)

    @property
    def printed(self) -> int:
        """How many numbers are printed: as counted, or else those that are known here."""
        return self.figures if self.figures is not None else self.entered + sum(one.figures for one in self.left_out)

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
    """The title, the tables and then the figures of a paper by its name, or of an experiment file by its path.

    >>> title, tables = read_tables("dpsur")
    >>> tables[0].number, tables[0].cells[0].printed["accuracy"]
    ('2', 97.93)
    """
    source: Traversable | Path = Path(paper) if paper.endswith(".toml") else _folder() / f"{paper}.toml"
    if not source.is_file():
        raise UnknownName("paper", paper, papers())
    with as_file(source) as place:
        values = read_toml(place, error=SettingError)
    try:
        # A file with neither is told that it has no table.
        kinds = [kind for kind in KINDS if kind in values] or ["table"]
        return values["title"], [_table(kind, *named) for kind in kinds for named in values[kind].items()]
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, SettingError):
            raise
        few = "a list has fewer entries than columns" if isinstance(error, IndexError) else str(error)
        missing = f"{error} is missing" if isinstance(error, KeyError) else few
        raise SettingError(f"{source} is not an experiment file: {missing} (see docs/reproduce.md)") from error


def find_table(paper: str, number: str, kind: TableKind = "table") -> Table:
    """One table or figure of a paper.

    >>> len(find_table("dpsur", "2").chosen("mnist-dpsur-eps*"))
    4
    """
    tables = {table.number: table for table in read_tables(paper)[1] if table.kind == kind}
    if number not in tables:
        raise UnknownName(kind, number, list(tables))
    return tables[number]


def _folder() -> Traversable:
    return files("reticent.experiments") / "papers"


def _table(kind: TableKind, number: str, values: Settings) -> Table:
    return Table(
        kind=kind,
        number=number,
        title=values["title"],
        runs=values.get("runs"),
        notes=tuple(values.get("notes", [])),
        cells=tuple(cells_of(values.get("row", []), values.get("shared", {}))),
        figures=values.get("figures"),
        left_out=tuple(LeftOut(one["what"], one["figures"], one["why"]) for one in values.get("left_out", [])),
    )
