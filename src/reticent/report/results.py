"""Results: what a folder holds about its runs, and about attacks on them and audits of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from reticent.errors import DataError
from reticent.files import stored_at
from reticent.report.entries import (
    AttackEntry,
    AuditEntry,
    Told,
    attack_answers,
    audit_answers,
    read_attack_answers,
    read_attacks,
    read_audits,
)
from reticent.results import ANSWER, RESULTS, Result, name_of, read_result, read_results
from reticent.results.fields import Fields, read_lines

E = TypeVar("E", AttackEntry, AuditEntry)


@dataclass(frozen=True)
class Results:
    """The runs of a folder, and the attacks on them and audits of them that were stored there."""

    runs: list[Result]
    attacks: list[AttackEntry]
    audits: list[AuditEntry]
    private: list[dict[str, object]]
    """Private diagnostics, only if they were asked for; not covered by any guarantee."""

    @staticmethod
    def of(run: Result, found: Mapping[str, Mapping[str, object]]) -> Results:
        """One run that is in no folder, with what an attack and an audit answered about it."""
        attack, audit = ([Fields(found[name], f"the {name}")] if name in found else [] for name in ("attack", "audit"))
        attacks = [replace(entry, run=run.run) for entry in attack_answers(attack)]
        return Results([run], attacks, [replace(entry, run=run.run) for entry in audit_answers(audit)], [])

    @property
    def done(self) -> list[Result]:
        """The runs that got to their end."""
        return [run for run in self.runs if run.done]

    @property
    def failed(self) -> list[Result]:
        """The runs that did not."""
        return [run for run in self.runs if not run.done]

    def run_of(self, entry: Told) -> Result | None:
        """The run that an attack or an audit is about; None for an audit of a method as such."""
        return next((run for run in self.runs if run.run == entry.run), None)


def read(folder: Path, *, private: bool = False) -> Results:
    """Read a folder that `compare`, a sweep or `train` wrote, with the attacks and audits stored in it."""
    if (folder / RESULTS).exists():
        runs = read_results(folder / RESULTS)
    elif (folder / ANSWER).exists():
        runs = [read_result(folder)]
    else:
        raise DataError(f"{folder} holds no results: neither {RESULTS} (compare) nor {ANSWER} (train) is there")
    order = {run.run: number for number, run in enumerate(runs)}
    places = [folder, *sorted(folder.glob("runs/*"))]

    def gather(name: str, reader: Callable[[Path], list[E]]) -> list[E]:
        found = [(entry, name_of(place)) for place in places for entry in reader(stored_at(place, name))]
        return [replace(entry, run=_run(entry.run, place, order)) for entry, place in found]

    attacks = gather("attacks.json", read_attacks) + gather("attack/attack.json", read_attack_answers)
    return Results(
        runs,
        sorted(attacks, key=lambda entry: len(order) if entry.run is None else order[entry.run]),
        gather("audit.json", read_audits),
        [line for place in places for line in _diagnostics(place, order)] if private else [],
    )


def _run(named: str | None, place: str, known: dict[str, int]) -> str | None:
    """Which run something belongs to: the one it names, or else the folder it lies in."""
    return next((name for name in (Path(named or "").name, place) if name in known), None)


def _diagnostics(place: Path, known: dict[str, int]) -> list[dict[str, object]]:
    """What a page draws of private diagnostics, round by round."""
    path = stored_at(place, "diagnostics.jsonl", "private-diagnostics.jsonl")
    lines: list[Fields] = read_lines(path) if path.exists() else []
    numbers = ("round", "drawn", "bounded")
    return [
        {
            "private": True,
            "run": _run(None, name_of(place), known),
            **{name: line.need(name, int) for name in numbers},
        }
        for line in lines
    ]
