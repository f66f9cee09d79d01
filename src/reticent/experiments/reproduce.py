"""Reproduce: run a paper's table again, and put what we measure and prove beside what it printed and claimed."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from reticent.checkpoint import replace_file
from reticent.errors import SettingError
from reticent.experiments.job import Job
from reticent.experiments.recipe import check
from reticent.experiments.sweep import Watcher, failures, sweep
from reticent.experiments.tables import TableCell
from reticent.report import Spread
from reticent.results import RESULTS, Result

Epsilon = Literal["proved", "claimed"]


@dataclass(frozen=True)
class Reproduced:
    """A cell run again: ours beside the paper's."""

    cell: str
    printed: float | None
    printed_epsilon: float | None
    accuracy: float | None
    """Mean over the seeds, in percent, like the paper's."""
    low: float | None
    high: float | None
    difference: float | None
    """Ours less the paper's, in points."""
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


def jobs_of(cells: Sequence[TableCell], seeds: int, epsilon: Epsilon) -> list[tuple[TableCell, Job]]:
    """The runs that cells take, the first seed of all of them first."""
    if seeds < 1:
        raise SettingError(f"at least one seed is needed, not {seeds}")
    return [(cell, _job(cell, seed, epsilon)) for seed in range(seeds) for cell in cells]


def _job(cell: TableCell, seed: int, epsilon: Epsilon) -> Job:
    recipe = cell.recipe if epsilon == "proved" else cell.as_claimed
    if recipe is None:
        raise SettingError(f"the paper does not state noise and length for {cell.name}: run it at a proved epsilon")
    check(recipe.filled())
    # At a claimed epsilon there is no budget to tell the cells of a row apart by.
    name, label = (cell.name, cell.row) if epsilon == "proved" else (f"{cell.name}-as-claimed", cell.name)
    return Job(name=f"{name}-seed{seed}", label=label, recipe=dataclasses.replace(recipe, seed=seed))


def minutes_of(cells: Sequence[TableCell], seeds: int, processes: int) -> float | None:
    """About how long all runs take; None if that is not known for one of them."""
    known = [cell.minutes for cell in cells if cell.minutes is not None]
    return seeds * sum(known) / processes if len(known) == len(cells) else None


def reproduce(
    cells: Sequence[TableCell], out: Path, *, seeds: int, epsilon: Epsilon, processes: int, watcher: Watcher
) -> Reproduction:
    """Run cells of a table and write results.jsonl and reproduced.csv; after any crash the same call goes on."""
    planned = jobs_of(cells, seeds, epsilon)
    runs = sweep([job for _, job in planned], out, processes=processes, watcher=watcher)
    found: dict[str, list[Result]] = {}
    for (cell, _), result in zip(planned, runs, strict=True):
        found.setdefault(cell.name, []).append(result)
    rows = [beside(cell, found[cell.name]) for cell in cells]
    table = out / ("reproduced.csv" if epsilon == "proved" else "reproduced-as-claimed.csv")
    replace_file(table, to_csv(rows).encode())
    return Reproduction(rows=tuple(rows), runs=tuple(runs), out=out, csv=table)


def beside(cell: TableCell, results: Sequence[Result]) -> Reproduced:
    """What the runs of a cell gave, beside what the paper printed."""
    done = [result for result in results if result.done]
    accuracies = [100 * result.accuracy for result in done if result.accuracy is not None]
    spread = Spread.of(accuracies) if accuracies else None
    epsilons = [result.epsilon for result in done if result.epsilon is not None]
    return Reproduced(
        cell=cell.name,
        printed=cell.printed,
        printed_epsilon=cell.recipe.epsilon,
        accuracy=spread.mean if spread else None,
        low=spread.low if spread else None,
        high=spread.high if spread else None,
        difference=spread.mean - cell.printed if spread and cell.printed is not None else None,
        epsilon=max(epsilons) if done and len(epsilons) == len(done) else None,
        claimed_epsilon=max((result.claimed_epsilon for result in done if result.claimed_epsilon), default=None),
        delta=done[0].delta if done else None,
        seeds=len(done),
        failed=len(results) - len(done),
        minutes=sum(result.cpu_seconds or 0.0 for result in done) / 60 / len(done) if done else None,
        ours=" ".join(cell.ours),
    )


def to_csv(rows: Sequence[Reproduced]) -> str:
    """The rows as CSV.

    >>> to_csv([]).split(",")[:3]
    ['cell', 'printed', 'printed_epsilon']
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in dataclasses.fields(Reproduced)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(dataclasses.asdict(row) for row in rows)
    return text.getvalue()
