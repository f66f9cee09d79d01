"""`reticent reproduce`: a table of a paper again, ours beside the printed one."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

if TYPE_CHECKING:
    from reticent.experiments.reproduce import Reproduction
    from reticent.experiments.tables import Table, TableCell


def reproduce(
    paper: Annotated[str | None, Argument(help="A paper (left out: all are listed), or an experiment file.")] = None,
    table: Annotated[str | None, Option(help="Which of its tables or figures; left out: all are listed.")] = None,
    cells: Annotated[str | None, Option(help="Cells by commas, with * and ?; default: all of the table.")] = None,
    seeds: Annotated[int, Option(help="Runs of each cell.", min=1)] = 1,
    as_claimed: Annotated[
        bool,
        Option("--as-claimed", help="The paper's own noise and length, instead of what a proved epsilon affords."),
    ] = False,
    jobs: Annotated[int, Option(help="Runs at the same time.", min=1)] = 1,
    out: Annotated[Path | None, Option(help="Folder for everything; what is there is gone on with.")] = None,
    list_: Annotated[bool, Option("--list", help="Say what would be run, and for how long; run nothing.")] = False,
    as_json: Annotated[bool, Option("--json", help="Answer in JSON on stdout.")] = False,
) -> None:
    """Run a paper's table again: its accuracy beside ours, the epsilon it claims beside the one that is proved.

    Run it again after any crash: it goes on where it was.
    """
    from reticent.experiments.reproduce import minutes_of
    from reticent.experiments.reproduce import reproduce as run
    from reticent.experiments.tables import find_table

    if paper is None or table is None:
        print(_listing([paper] if paper else None, as_json))
        return
    found = find_table(paper, table)
    chosen = found.chosen(cells)
    total = minutes_of(chosen, seeds, jobs)
    if list_:
        print(json.dumps([_as_json(cell) for cell in chosen]) if as_json else _plan(found, chosen, seeds, total))
        return
    from reticent.cli.compare import view

    print(_plan(found, chosen, seeds, total), file=sys.stderr, flush=True)
    folder = out if out is not None else Path("reproduced") / f"{Path(paper).stem}-{table}"
    with view(len(chosen) * seeds) as watcher:
        again = run(
            chosen,
            folder,
            seeds=seeds,
            epsilon="claimed" if as_claimed else "proved",
            processes=jobs,
            watcher=watcher,
        )
    print(json.dumps(again.to_json()) if as_json else in_words(again))
    if again.failed:
        raise typer.Exit(1)


def _listing(chosen: list[str] | None, as_json: bool) -> str:
    from reticent.experiments.tables import papers, read_tables

    found = {name: read_tables(name) for name in chosen or papers()}
    if as_json:
        rows = [
            {"paper": name, "title": title, "table": table.number, "about": table.title, "cells": len(table.cells)}
            for name, (title, tables) in found.items()
            for table in tables
        ]
        return json.dumps(rows)
    lines = []
    for name, (title, tables) in found.items():
        lines.append(f"{name}: {title}")
        lines += [f"  --table {table.number:<4} {table.title} ({len(table.cells)} cells)" for table in tables]
    return "\n".join(lines)


def _plan(table: Table, cells: Sequence[TableCell], seeds: int, total: float | None) -> str:
    """What will be run and how long each cell takes, said before it starts."""
    runs = f", means of {table.runs} runs there" if table.runs else ""
    lines = [f"{table.title}{runs}", *(f"- {note}" for note in table.notes)]
    for cell in cells:
        time = f"about {cell.minutes:g} min a run" if cell.minutes is not None else "time not known"
        ours = f"; ours, not the paper's: {', '.join(cell.ours)}" if cell.ours else ""
        lines.append(f"{cell.name}: {time}{ours}")
    whole = f"about {total:.0f} minutes" if total is not None else "time not known"
    return "\n".join([*lines, f"{len(cells)} cells, {seeds} seed{'s' * (seeds > 1)}: {whole}"])


def _as_json(cell: TableCell) -> dict[str, object]:
    return {
        "cell": cell.name,
        "printed": cell.printed,
        "minutes": cell.minutes,
        "ours": cell.ours,
        "recipe": cell.recipe.filled().to_json(),
    }


def in_words(again: Reproduction) -> str:
    """The reproduced cells for people."""
    width = max(len(row.cell) for row in again.rows)
    lines = [f"{'cell':<{width}}{'paper':>9}{'ours':>9}{'seeds':>7}{'proved':>10}{'claimed':>10}"]
    for row in again.rows:
        numbers = [row.printed, row.accuracy, row.epsilon, row.claimed_epsilon]
        paper, ours, proved, claimed = ("-" if number is None else f"{number:.2f}" for number in numbers)
        lines.append(f"{row.cell:<{width}}{paper:>9}{ours:>9}{row.seeds:>7}{proved:>10}{claimed:>10}")
    lines += [f"FAILED {name}: {error}" for name, error in again.failed.items()]
    return "\n".join([*lines, f"accuracy in percent; written to {again.results}, {again.csv}"])
