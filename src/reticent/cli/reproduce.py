"""`reticent reproduce`: a table or figure of a paper again, ours beside the printed one."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from reticent.errors import SettingError

if TYPE_CHECKING:
    from reticent.experiments.cells import TableCell
    from reticent.experiments.reproduce import Reproduced, Reproduction
    from reticent.experiments.tables import Table


def reproduce(
    paper: Annotated[str | None, Argument(help="A paper (left out: all are listed), or an experiment file.")] = None,
    table: Annotated[str | None, Option(help="Which of its tables; neither this nor --figure: all are listed.")] = None,
    figure: Annotated[str | None, Option(help="Which of its figures.")] = None,
    cells: Annotated[str | None, Option(help="Cells by commas, with * and ?; default: all of the table.")] = None,
    seeds: Annotated[int, Option(help="Runs of each cell.", min=1)] = 1,
    as_claimed: Annotated[
        bool,
        Option("--as-claimed", help="The paper's own noise and length, instead of what a proved epsilon affords."),
    ] = False,
    jobs: Annotated[
        int | None, Option(help="Runs at the same time; default: one, or as many as the cluster has cores.", min=1)
    ] = None,
    cluster: Annotated[str | None, Option(help="Run on a cluster: ray, ray:ADDRESS or ray://HOST:PORT.")] = None,
    out: Annotated[Path | None, Option(help="Folder for everything; what is there is gone on with.")] = None,
    list_: Annotated[bool, Option("--list", help="Say what would be run, and for how long; run nothing.")] = False,
    dataset: Annotated[
        str | None, Option(help="Refused: only single runs are charged to a dataset (`reticent train --dataset`).")
    ] = None,
    as_json: Annotated[bool, Option("--json", help="Answer in JSON on stdout.")] = False,
) -> None:
    """Run a paper's table or figure again: its numbers beside ours, the claimed epsilon beside the proved one.

    Run it again after any crash: it goes on where it was.
    """
    from reticent.cli.compare import refuse_charge, view
    from reticent.experiments.reproduce import minutes_of
    from reticent.experiments.reproduce import reproduce as run
    from reticent.experiments.tables import find_table

    refuse_charge(dataset, "a paper's table")
    number = figure if table is None else table
    if table is not None and figure is not None:
        raise SettingError("give --table or --figure, not both")
    if paper is None or number is None:
        print(_listing([paper] if paper else None, as_json))
        return
    found = find_table(paper, number, "figure" if table is None else "table")
    chosen = found.chosen(cells)
    total = minutes_of(chosen, seeds, jobs or 1)
    if list_:
        print(json.dumps([_as_json(cell) for cell in chosen]) if as_json else _plan(found, chosen, seeds, total))
        return
    print(_plan(found, chosen, seeds, total), file=sys.stderr, flush=True)
    folder = (
        out if out is not None else Path("reproduced") / f"{Path(paper).stem}-{'figure-' * (table is None)}{number}"
    )
    with view(len(chosen) * seeds) as watcher:
        again = run(
            chosen,
            folder,
            seeds=seeds,
            epsilon="claimed" if as_claimed else "proved",
            processes=jobs,
            watcher=watcher,
            cluster=cluster,
        )
    print(json.dumps(again.to_json()) if as_json else in_words(again))
    if again.failed:
        raise typer.Exit(1)


def _listing(chosen: list[str] | None, as_json: bool) -> str:
    from reticent.experiments.tables import papers, read_tables

    found = {name: read_tables(name) for name in chosen or papers()}
    if as_json:
        return json.dumps([_listed(name, title, table) for name, (title, tables) in found.items() for table in tables])
    lines = []
    for name, (title, tables) in found.items():
        printed, entered = (sum(getattr(table, of) for table in tables) for of in ("printed", "entered"))
        lines.append(f"{name}: {title} ({printed} numbers printed, {entered} with an entry)")
        for table in tables:
            figures = f"{len(table.cells)} cells; {table.printed} numbers printed, {table.entered} with an entry"
            lines.append(f"  --{table.kind} {table.number:<4} {table.title} ({figures})")
    return "\n".join(lines)


def _listed(paper: str, title: str, table: Table) -> dict[str, object]:
    return {
        "paper": paper,
        "title": title,
        "kind": table.kind,
        "number": table.number,
        "about": table.title,
        "cells": len(table.cells),
        "printed": table.printed,
        "entered": table.entered,
        "left_out": [dataclasses.asdict(one) for one in table.left_out],
    }


def _plan(table: Table, cells: Sequence[TableCell], seeds: int, total: float | None) -> str:
    """What will be run and how long each cell takes, said before it starts."""
    runs = f", means of {table.runs} runs there" if table.runs else ""
    lines = [f"{table.title}{runs}", *(f"- {note}" for note in table.notes)]
    for cell in cells:
        time = f"about {cell.minutes:g} min a run" if cell.minutes is not None else "time not known"
        ours = f"; ours, not the paper's: {', '.join(cell.ours)}" if cell.ours else ""
        instead = f"; stands in: {cell.stand_in}" if cell.stand_in else ""
        lines.append(f"{cell.name}: {time}{ours}{instead}")
    lines += [f"left out: {one.what} ({one.figures} numbers): {one.why}" for one in table.left_out]
    whole = f"about {total:.0f} minutes" if total is not None else "time not known"
    return "\n".join([*lines, f"{len(cells)} cells, {seeds} seed{'s' * (seeds > 1)}: {whole}"])


def _as_json(cell: TableCell) -> dict[str, object]:
    return {
        "cell": cell.name,
        "printed": dict(cell.printed),
        "minutes": cell.minutes,
        "ours": cell.ours,
        "stand_in": cell.stand_in,
        "kind": cell.kind,
        "attack": None if cell.attack is None else dict(cell.attack),
        "recipe": cell.recipe.filled().to_json(),
    }


def in_words(again: Reproduction) -> str:
    """The reproduced numbers for people."""
    from reticent.experiments.measures import why_missing

    names = [_named(row) for row in again.rows]
    width = max(len(name) for name in names)
    lines = [f"{'cell':<{width}}{'paper':>9}{'ours':>9}{'seeds':>7}{'proved':>10}{'claimed':>10}"]
    for name, row in zip(names, again.rows, strict=True):
        numbers = [row.printed, row.value, row.epsilon, row.claimed_epsilon]
        paper, ours, proved, claimed = ("-" if number is None else f"{number:{_digits(number)}}" for number in numbers)
        lines.append(f"{name:<{width}}{paper:>9}{ours:>9}{row.seeds:>7}{proved:>10}{claimed:>10}")
    missing = dict.fromkeys(row.measure for row in again.rows if row.value is None and row.seeds)
    lines += [f"no {name}: {why_missing(name)}" for name in missing]
    lines += dict.fromkeys(f"* stands in: {row.stand_in}" for row in again.rows if row.stand_in)
    lines += [f"FAILED {name}: {error}" for name, error in again.failed.items()]
    return "\n".join([*lines, f"accuracy in percent; written to {again.results}, {again.csv}"])


def _named(row: Reproduced) -> str:
    return f"{row.cell}{'' if row.measure == 'accuracy' else f' {row.measure}'}{'*' * bool(row.stand_in)}"


def _digits(number: float) -> str:
    return ".3f" if abs(number) < 1 else ".2f"
