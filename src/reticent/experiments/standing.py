"""How the papers stand: every number that they print, beside what the published records hold of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from reticent.errors import SettingError
from reticent.experiments.cells import TableCell
from reticent.experiments.measures import Accounting, measure
from reticent.experiments.published import Record, essence_of, mark_of, read_published
from reticent.experiments.tables import Table, papers, read_tables
from reticent.experiments.wanted import Wanted, is_main
from reticent.reading import read_toml, reading
from reticent.report import Spread
from reticent.report.papers import Ours, Paper, PaperNumber, PaperTable
from reticent.results import Result

CURVE, LOOKED_AT = "curve", ("curve", "epsilon_at_accuracy")
"""What a run gives only where it was judged along the way."""
REASONS = "reasons.toml"
"""Why numbers of ours differ from the printed ones, by cells: written by people."""


def standing(folder: Path, names: Sequence[str] | None = None) -> list[Paper]:
    """Every paper, with what the records in a folder hold for its cells."""
    held = Held.of(read_published(folder))
    reasons = read_reasons(folder / REASONS)
    found = []
    for name in papers() if names is None else names:
        title, tables = read_tables(name)
        found.append(Paper(name, title, tuple(_table(name, table, held, reasons) for table in tables)))
    return found


@dataclass(frozen=True)
class Held:
    """The runs that there are, by what they are: with their attack, and without."""

    runs: dict[str, dict[int | None, Result]]

    @staticmethod
    def of(records: Sequence[Record]) -> Held:
        """The runs of some records; of two with one seed the later is taken."""
        runs: dict[str, dict[int | None, Result]] = {}
        for record in sorted(records, key=lambda record: record.get("finished") or ""):
            told = {name: value for name, value in record.items() if name != "attack"}
            for mark in {essence_of(record), mark_of(record)}:
                runs.setdefault(mark, {})[record["seed"]] = Result.from_json(told)
        return Held(runs)

    def serving(self, one: Wanted, name: str) -> list[Result]:
        """The runs that give a measure of a cell, seed by seed; some take more than the training."""
        found = self.runs.get(one.mark if "." in name or name.startswith(LOOKED_AT) else one.essence, {})
        return [found[seed] for seed in sorted(found, key=lambda seed: -1 if seed is None else seed)]


# -- why they differ ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reason:
    """Why some cells of a table differ."""

    paper: str
    table: str
    cells: str
    """Names by commas, with * and ?."""
    why: str

    def about(self, paper: str, table: Table, cell: TableCell) -> bool:
        """Whether it is about a cell; a table is named as in `table 2` or `figure 5`."""
        here = (self.paper, self.table) == (paper, f"{table.kind} {table.number}")
        return here and any(fnmatch(cell.name, part.strip()) for part in self.cells.split(","))


def read_reasons(path: Path) -> list[Reason]:
    """The reasons in a file, if there is one; each must be about a cell that there is."""
    if not path.exists():
        return []
    said = read_toml(path, error=SettingError)
    with reading(path, "each reason says paper, table, cells and why", error=SettingError):
        found = [Reason(one["paper"], one["table"], one["cells"], one["why"]) for one in said.get("reason", [])]
    tables = {name: read_tables(name)[1] for name in {reason.paper for reason in found}}
    for reason in found:
        if not any(reason.about(reason.paper, table, cell) for table in tables[reason.paper] for cell in table.cells):
            raise SettingError(f"{path}: no cell of {reason.paper}, {reason.table} is called {reason.cells!r}")
    return found


# -- number by number --------------------------------------------------------------------------------------------------


def _table(paper: str, table: Table, held: Held, reasons: Sequence[Reason]) -> PaperTable:
    numbers = []
    for cell in table.cells:
        why = "; ".join(reason.why for reason in reasons if reason.about(paper, table, cell)) or None
        asked = Wanted(paper, table, cell, claimed=False)
        numbers += [_number(asked, name, held, why) for name in _measures(cell)]
    return PaperTable(
        kind=table.kind,
        number=table.number,
        title=table.title,
        main=is_main(paper, table),
        notes=table.notes,
        printed=table.printed,
        entered=table.entered,
        numbers=tuple(numbers),
        left_out=tuple(f"{one.what} ({one.figures}): {one.why}" for one in table.left_out),
    )


def _measures(cell: TableCell) -> list[str]:
    """What is shown of a cell: what is printed of it, or else accuracy and the attack that does best."""
    return list(cell.printed) or ["accuracy", *(["best.auc"] if cell.attack is not None else [])]


def _number(asked: Wanted, name: str, held: Held, why: str | None) -> PaperNumber:
    cell = asked.cell
    has_claim = cell.as_claimed is not None and cell.kind == "private"
    claimed = Wanted(asked.paper, asked.table, cell, claimed=True) if has_claim else None
    at, changing = _place(asked)
    return PaperNumber(
        row=cell.row,
        column=cell.column,
        cell=cell.name,
        data=cell.recipe.data,
        measure=name,
        printed=cell.printed.get(name),
        proved=_ours(held.serving(asked, name), name, "proved"),
        claimed=None if claimed is None else _ours(held.serving(claimed, name), name, "claimed"),
        has_claim=has_claim,
        at=at,
        changing=changing,
        curve=_curve(held.serving(asked, CURVE)) if name == "accuracy" else (),
        stand_in=cell.stand_in,
        beside=cell.beside,
        why=why,
    )


def _ours(runs: Sequence[Result], name: str, accounting: Accounting) -> Ours | None:
    """The mean over the seeds; a mean over those that happen to have a number would flatter."""
    values = [value for run in runs if (value := measure(name, run, accounting)) is not None]
    if not values or len(values) < len(runs):
        return None
    epsilons = [run.epsilon for run in runs if run.epsilon is not None]
    return Ours(
        spread=Spread.of(values),
        seeds=len(values),
        epsilon=max(epsilons) if len(epsilons) == len(runs) else None,
        claimed_epsilon=max((run.claimed_epsilon for run in runs if run.claimed_epsilon), default=None),
    )


def _curve(runs: Sequence[Result]) -> tuple[tuple[float, float], ...]:
    """The first run's accuracy in percent against the epsilon spent, if it has such a curve."""
    learning = runs[0].learning if runs else None
    if learning is None or learning.of != "accuracy":
        return ()
    spent = dict(learning.epsilon)
    return tuple((spent[number], 100 * value) for number, value in learning.points if number in spent)


def _place(asked: Wanted) -> tuple[float | None, str | None]:
    """Where a chart draws a cell: at the one number that changes along its row, epsilon first."""
    row = [cell for cell in asked.table.cells if cell.row == asked.cell.row]
    settings = [_numbers(cell) for cell in row]
    changing = [name for name in settings[0] if len({one.get(name) for one in settings}) == len(row) > 1]
    if not changing:
        return None, None
    name = "epsilon" if "epsilon" in changing else changing[0]
    return _numbers(asked.cell)[name], name


def _numbers(cell: TableCell) -> dict[str, float]:
    recipe = cell.recipe.to_json()
    both = recipe | recipe["options"]
    return {name: float(value) for name, value in both.items() if type(value) in (int, float)}
