"""Run the tables and figures of the papers: `python results/papers.py OUT` does the runs, and resumes.

One run serves every cell, of whatever paper, that asks for the same; what the records here hold is not run again. The
tables that a paper's claim stands on come first, then what gives most numbers for its time, and after `--minutes`
nothing new is begun. Every run has a folder in OUT/runs, and as soon as it is over, a line in papers.jsonl.
`--collect` only writes these lines, while runs go on; `--list` only says what would be run.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from reticent.cli.compare import told
from reticent.data import resolve
from reticent.data.catalogue import LOADERS
from reticent.data.fetch.getting import STORED
from reticent.data.loading.places import data_folder
from reticent.errors import ResumeError, ReticentError
from reticent.experiments.job import Job, claim
from reticent.experiments.locks import locked
from reticent.experiments.published import PAPERS, Record, essence_of, mark_of, read_published, slim, to_lines
from reticent.experiments.recipe import check
from reticent.experiments.sweep import sweep
from reticent.experiments.tables import papers
from reticent.experiments.wanted import Wanted, wanted
from reticent.files import replace_file
from reticent.results import Result

HERE = Path(__file__).parent
RECORDS = HERE / PAPERS
CHEAP = 3.0
"""Cells that take fewer minutes have as many seeds as are asked for, others one."""


def obstacle(one: Wanted, longest: float) -> str | None:
    """Why a run cannot be had here; None if it can."""
    try:
        check(one.recipe.filled())
    except ReticentError as error:
        return str(error)
    name = resolve(one.recipe.data)
    if not (STORED[name].present(data_folder()) if name in STORED else name in LOADERS or Path(name).exists()):
        return f"no {name} here"
    if one.cell.minutes is None:
        return "nobody has said how long it takes"
    return f"takes more than {longest:g} minutes" if one.cell.minutes > longest else None


def planned(possible: Sequence[Wanted], seeds: int, held: set[tuple[str, int]]) -> Iterator[tuple[Wanted, Job]]:
    """The runs to do, the cheapest for each number first, each once; the first seed of all before the second of any."""
    seen = set(held)
    numbers: Counter[str] = Counter()
    for one in possible:
        numbers[one.mark] += len(one.cell.printed)
    main = {one.essence for one in possible if one.main}
    for seed in range(seeds):
        now = [one for one in possible if seed == 0 or (one.cell.minutes or 0.0) < CHEAP]
        looked_at = {one.essence for one in now if one.mark != one.essence}
        for one in sorted(now, key=lambda one: price(one, numbers[one.mark], one.essence in main)):
            served = one.mark == one.essence and one.essence in looked_at  # by one that is attacked or has a curve
            if (one.mark, seed) not in seen and not served:
                seen.add((one.mark, seed))
                yield one, job_of(one, seed)


def price(one: Wanted, numbers: int, main: bool) -> tuple[bool, bool, bool, bool, float]:
    """Smaller is run earlier: printed numbers, grey images or words, main tables, a proved epsilon, and quickness.

    The last is in minutes for each number.
    """
    colour = resolve(one.recipe.data).startswith("cifar")
    return numbers == 0, colour, not main, one.claimed, (one.cell.minutes or 0.0) / max(numbers, 1)


def job_of(one: Wanted, seed: int) -> Job:
    """The run with a seed; its name and label follow from what it is, not from the cell that asked first."""
    recipe, attack = replace(one.recipe.filled(), seed=seed), one.attack
    label = f"{resolve(recipe.data)}-{recipe.method if one.cell.kind == 'private' else 'plain'}"
    mark = hashlib.sha256(one.mark.encode()).hexdigest()[:10]
    return Job(name=f"{label}-{mark}-seed{seed}", label=label, recipe=recipe, kind=one.cell.kind, attack=attack)


def claimable(job: Job, out: Path) -> bool:
    """Whether the folder of a run is free for it; one that was begun by other code with other settings is left."""
    try:
        claim(job, out / "runs" / job.name)
    except ResumeError as error:
        print(f"left out: {error}", file=sys.stderr)
        return False
    return True


def collect(out: Path) -> int:
    """Write a line for each finished run that a cell asks for into papers.jsonl; how many there are."""
    everything = wanted(papers())
    asked = {one.essence: one for one in reversed(everything)} | {one.mark: one for one in reversed(everything)}
    with locked(out):  # two may collect at once
        lines = RECORDS.read_text().splitlines() if RECORDS.exists() else []
        found: dict[str, Record] = {record["run"]: record for record in map(json.loads, lines)}
        for path in out.glob("runs/*/record.json"):
            record = json.loads(path.read_text())
            if record["status"] == "done":
                job = json.loads((path.parent / "job.json").read_text())
                found[record["run"]] = slim(record) | ({"attack": job["attack"]} if job.get("attack") else {})
        serving = {run: one for run, record in sorted(found.items()) if (one := _asker(asked, record))}
        if len(serving) < len(found):
            print(f"{len(found) - len(serving)} runs serve no cell any more: left out", file=sys.stderr)
        records = (
            found[run] | {"command": f"{one.command} --seeds {found[run]['seed'] + 1}"} for run, one in serving.items()
        )
        replace_file(RECORDS, to_lines(records).encode())
    return len(serving)


def _asker(asked: dict[str, Wanted], record: Record) -> Wanted | None:
    """The first cell that a run serves: one that asks for it with its attack, or else without."""
    return asked.get(mark_of(record)) or asked.get(essence_of(record))


class Watcher:
    """Says what ends, and collects it."""

    def __init__(self, out: Path, total: int) -> None:
        self.out, self.total, self.count = out, total, 0

    def began(self, job: Job) -> None:
        """A line in the log."""
        print(f"{time.strftime('%H:%M')} begins {job.name}", flush=True)

    def advanced(self, job: Job, done: int, total: int) -> None:
        """Not said."""

    def ended(self, job: Job, result: Result) -> None:  # noqa: ARG002 - the result says it all
        """A line in the log, and one in the records."""
        self.count += 1
        print(f"{time.strftime('%H:%M')} [{self.count} of {self.total}] {told(result)}", flush=True)
        collect(self.out)


def asked_for(words: Sequence[str] | None = None) -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder for the runs")
    parser.add_argument("--papers", nargs="+", default=papers(), choices=papers())
    parser.add_argument("--minutes", type=float, default=400.0, help="after these nothing is begun")
    parser.add_argument("--longest", type=float, default=15.0, help="cells that take more minutes are left out")
    parser.add_argument("--jobs", type=int, default=2, help="runs at the same time")
    parser.add_argument("--seeds", type=int, default=1, help=f"of cells under {CHEAP:g} minutes; others have one")
    parser.add_argument("--as-claimed", action="store_true", help="with the papers' own noise and length too")
    parser.add_argument("--collect", action="store_true", help="only write the records of what is done")
    parser.add_argument("--list", action="store_true", help="only say what would be run")
    return parser.parse_args(words)


def main(asked: argparse.Namespace) -> None:
    """Run, collect, or list."""
    if asked.collect:
        print(f"{collect(asked.out)} runs in {RECORDS}")
        return
    everything = [one for one in wanted(asked.papers) if asked.as_claimed or not one.claimed]
    why = {one: obstacle(one, asked.longest) for one in everything}
    held = {(mark(record), record["seed"]) for record in read_published(HERE) for mark in (mark_of, essence_of)}
    todo = list(planned([one for one in everything if why[one] is None], asked.seeds, held))
    for one, reason in why.items():
        if reason is not None:
            print(f"left out: {one.place} {one.cell.name}: {reason}")
    for one, job in todo:
        print(f"{one.cell.minutes:6.1f} min  {job.name}  {one.command}")
    total = sum(one.cell.minutes or 0.0 for one, _ in todo)
    print(f"{len(todo)} runs, about {total / asked.jobs:.0f} minutes, {len(everything)} asked for", flush=True)
    if asked.list:
        return
    jobs = [job for _, job in todo if claimable(job, asked.out)]
    end = time.monotonic() + 60 * asked.minutes
    sweep(
        jobs,
        asked.out,
        processes=asked.jobs,
        watcher=Watcher(asked.out, len(jobs)),
        more=lambda: time.monotonic() < end,
    )


if __name__ == "__main__":
    main(asked_for())
