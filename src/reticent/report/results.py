"""Results: what a folder holds about its runs, read back as plain data."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reticent.errors import DataError

Record = dict[str, Any]


@dataclass(frozen=True)
class Results:
    """The runs of a folder, and the attacks on them and audits of them that were stored there."""

    runs: list[Record]
    attacks: list[Record]
    audits: list[Record]
    private: list[Record]
    """Private diagnostics, only if they were asked for; not covered by any guarantee."""

    @property
    def done(self) -> list[Record]:
        """The runs that got to their end."""
        return [run for run in self.runs if run["status"] == "done"]

    @property
    def failed(self) -> list[Record]:
        """The runs that did not."""
        return [run for run in self.runs if run["status"] != "done"]

    def run_of(self, entry: Record) -> Record | None:
        """The run that an attack or an audit is about; None for an audit of a method as such."""
        return next((run for run in self.runs if run["run"] == entry["run"]), None)


def read(folder: Path, *, private: bool = False) -> Results:
    """Read a folder that `compare`, a sweep or `train` wrote, with the attacks and audits stored in it."""
    if (folder / "results.jsonl").exists():
        runs = _lines(folder / "results.jsonl")
    elif (folder / "result.json").exists():
        runs = [_single(folder)]
    else:
        raise DataError(f"{folder} holds no results: neither results.jsonl (compare) nor result.json (train) is there")
    known = {run["run"] for run in runs}
    places = [(folder, folder.name)] + [(path, path.name) for path in sorted(folder.glob("runs/*"))]

    def gather(name: str, reader: Callable[[Path], list[Record]]) -> list[Record]:
        return [_named(entry, place, known) for path, place in places for entry in reader(path / name)]

    attacks = gather("attacks.json", _entries) + gather("attack/attack.json", _attacks)
    order = {run["run"]: number for number, run in enumerate(runs)}
    return Results(
        runs,
        sorted(attacks, key=lambda entry: order.get(entry["run"], len(order))),
        gather("audit.json", _audits),
        gather("private-diagnostics.jsonl", _lines) if private else [],
    )


def _named(entry: Record, place: str, known: set[str]) -> Record:
    """Say which run an entry belongs to: the one it names, or else the folder it lies in."""
    named = Path(str(entry.get("run") or "")).name
    return {**entry, "run": next((name for name in (named, place) if name in known), None)}


def _attacks(path: Path) -> list[Record]:
    """The entries in an answer of `reticent attack`: its attacks, the shadows pooled, canaries, the blind baseline."""
    entries = []
    for answer in _entries(path):
        beyond = answer.get("above_what_is_permitted", [])
        entries += [entry | {"exceeds": entry["attack"] in beyond} for entry in answer["attacks"]]
        entries += [answer[name] for name in ("pooled", "canaries", "blind") if answer.get(name) is not None]
    return entries


def _audits(path: Path) -> list[Record]:
    """The entries in answers of `reticent audit`: the run as a whole, and one step of its method by itself."""
    entries = []
    for answer in _entries(path):
        entries.append(answer)
        step = answer.get("step") or {}
        if step.get("upper") is not None and any(answer[name] != step[name] for name in ("lower", "upper")):
            doubted = any(probe.startswith("step") for probe in answer["said_by"])
            verdict = "contradicted" if doubted else "consistent"
            entries.append(answer | step | {"name": "one step", "verdict": verdict})
    return entries


def _lines(path: Path) -> list[Record]:
    if not path.exists():
        return []
    try:
        return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    except ValueError as error:
        raise DataError(f"{path} is not JSON lines: {error}") from error


def _entries(path: Path) -> list[Record]:
    """A file with one entry or a list of them."""
    if not path.exists():
        return []
    try:
        found = json.loads(path.read_text())
    except ValueError as error:
        raise DataError(f"{path} is not JSON: {error}") from error
    return found if isinstance(found, list) else [found]


def _single(folder: Path) -> Record:
    """The answer of `train` as the record of one run."""
    answer = json.loads((folder / "result.json").read_text())
    recipe, guarantee = answer["recipe"], answer["guarantee"]
    plain = answer.get("optimizer") is not None  # only plain training has one beside its recipe
    method = "plain" if plain else recipe["method"]
    return {
        **answer,
        "run": folder.name,
        "label": method,
        "kind": "plain" if plain else "private",
        "status": "done",
        "error": None,
        "data": recipe["data"],
        "model": recipe["model"],
        "method": method,
        "seed": recipe["seed"],
        "target_epsilon": recipe["epsilon"],
        "epsilon": guarantee["epsilon"],
        "delta": guarantee["delta"],
        "claimed_epsilon": (guarantee["as_claimed"] or {}).get("epsilon"),
        "wall_seconds": answer["seconds"],
    }
