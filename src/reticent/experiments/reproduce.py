"""Reproduce: a paper's tables and figures again, what we measure and prove beside what it printed and claimed."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reticent.errors import SettingError, UnknownName
from reticent.experiments.attacking import Attacking
from reticent.experiments.cells import TableCell
from reticent.experiments.job import Job
from reticent.experiments.measures import Accounting, measure
from reticent.experiments.recipe import check
from reticent.experiments.sweep import Watcher, failures, sweep
from reticent.files import replace_file
from reticent.report import Spread
from reticent.results import RESULTS, Result

ATTACK_SETTINGS = {field.name for field in dataclasses.fields(Attacking)} - {"jobs", "cluster", "tell"} | {"game"}
"""What an entry may say of its attack."""


@dataclass(frozen=True)
class Reproduced:
    """A printed number run again: ours beside the paper's."""

    cell: str
    measure: str
    printed: float | None
    printed_epsilon: float | None
    value: float | None
    """Ours, mean over the seeds, in the unit of the measure; None if not every run gives it."""
    low: float | None
    high: float | None
    difference: float | None
    """Ours less the paper's."""
    epsilon: float | None
    """The largest that is proved for any of the seeds; None: nothing is."""
    claimed_epsilon: float | None
    """What the paper's rule gives for the same runs, where it has one of its own: no guarantee."""
    delta: float | None
    seeds: int
    failed: int
    minutes: float | None
    ours: str
    """The settings that the paper does not state."""
    stand_in: str
    """What data or network stand in for the paper's; empty where they are the paper's."""


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """What came of the cells that were run again, and where it is written."""

    rows: tuple[Reproduced, ...]
    runs: tuple[Result, ...]
    out: Path
    csv: Path

    @property
    def failed(self) -> dict[str, str]:
        """Why each of the runs failed that did."""
        return failures(self.runs)

    @property
    def results(self) -> Path:
        """The file with a line for each run."""
        return self.out / RESULTS

    def to_json(self) -> dict[str, object]:
        """The figures and the places as plain data."""
        return {
            "rows": [dataclasses.asdict(row) for row in self.rows],
            "failed": self.failed,
            "results": str(self.results),
            "csv": str(self.csv),
            "out": str(self.out),
        }


def jobs_of(cells: Sequence[TableCell], seeds: int, epsilon: Accounting) -> list[tuple[TableCell, Job]]:
    """The runs that cells take, the first seed of all of them first."""
    if seeds < 1:
        raise SettingError(f"at least one seed is needed, not {seeds}")
    return [(cell, _job(cell, seed, epsilon)) for seed in range(seeds) for cell in cells]


def _job(cell: TableCell, seed: int, epsilon: Accounting) -> Job:
    recipe = cell.recipe if epsilon == "proved" else cell.as_claimed
    if recipe is None:
        raise SettingError(f"the paper does not state noise and length for {cell.name}: run it at a proved epsilon")
    check(recipe.filled())
    for setting in cell.attack or ():
        if setting not in ATTACK_SETTINGS:
            raise UnknownName("setting of attack", setting, sorted(ATTACK_SETTINGS))
    if cell.kind == "plain" and epsilon == "claimed":
        raise SettingError(f"{cell.name} is trained without privacy: nothing is claimed of it")
    # At a claimed epsilon there is no budget to tell the cells of a row apart by.
    name, label = (cell.name, cell.row) if epsilon == "proved" else (f"{cell.name}-as-claimed", cell.name)
    recipe = dataclasses.replace(recipe, seed=seed)
    return Job(name=f"{name}-seed{seed}", label=label, recipe=recipe, kind=cell.kind, attack=cell.attack)


def minutes_of(cells: Sequence[TableCell], seeds: int, processes: int) -> float | None:
    """About how long all runs take; None if that is not known for one of them."""
    known = [cell.minutes for cell in cells if cell.minutes is not None]
    return seeds * sum(known) / processes if len(known) == len(cells) else None


def reproduce(
    cells: Sequence[TableCell],
    out: Path,
    *,
    seeds: int,
    epsilon: Accounting,
    processes: int | None,
    watcher: Watcher,
    cluster: str | None = None,
) -> Reproduction:
    """Run cells of a table and write results.jsonl and reproduced.csv; after any crash the same call goes on."""
    if not cells:
        raise SettingError("there is nothing here to run: --list says why")
    planned = jobs_of(cells, seeds, epsilon)
    runs = sweep([job for _, job in planned], out, processes=processes, watcher=watcher, cluster=cluster)
    found: dict[str, list[Result]] = {}
    for (cell, _), result in zip(planned, runs, strict=True):
        found.setdefault(cell.name, []).append(result)
    rows = [row for cell in cells for row in beside(cell, found[cell.name], epsilon)]
    table = out / ("reproduced.csv" if epsilon == "proved" else "reproduced-as-claimed.csv")
    replace_file(table, to_csv(rows).encode())
    return Reproduction(rows=tuple(rows), runs=tuple(runs), out=out, csv=table)


def beside(cell: TableCell, results: Sequence[Result], accounting: Accounting = "proved") -> list[Reproduced]:
    """What the runs of a cell gave, beside what the paper printed: a row for each measure."""
    done = [result for result in results if result.done]
    epsilons = [result.epsilon for result in done if result.epsilon is not None]
    rows = []
    for name in cell.printed or cell.measures:
        printed, ours = cell.printed.get(name), _spread(name, done, accounting)
        rows.append(
            Reproduced(
                cell=cell.name,
                measure=name,
                printed=printed,
                printed_epsilon=cell.recipe.epsilon,
                value=ours.mean if ours else None,
                low=ours.low if ours else None,
                high=ours.high if ours else None,
                difference=ours.mean - printed if ours and printed is not None else None,
                epsilon=max(epsilons) if done and len(epsilons) == len(done) else None,
                claimed_epsilon=max((one.claimed_epsilon for one in done if one.claimed_epsilon), default=None),
                delta=done[0].delta if done else None,
                seeds=len(done),
                failed=len(results) - len(done),
                minutes=sum(one.cpu_seconds or 0.0 for one in done) / 60 / len(done) if done else None,
                ours=" ".join(cell.ours),
                stand_in=cell.stand_in or "",
            )
        )
    return rows


def _spread(name: str, done: Sequence[Result], accounting: Accounting) -> Spread | None:
    """A mean over the runs that happen to have a number would flatter: all have it, or there is none."""
    values = [value for result in done if (value := measure(name, result, accounting)) is not None]
    return Spread.of(values) if values and len(values) == len(done) else None


def to_csv(rows: Sequence[Reproduced]) -> str:
    """The rows as CSV.

    >>> to_csv([]).split(",")[:3]
    ['cell', 'measure', 'printed']
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in dataclasses.fields(Reproduced)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(dataclasses.asdict(row) for row in rows)
    return text.getvalue()
