"""A job: one run of many, done in a folder of its own, and the record it leaves there."""

from __future__ import annotations

import json
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from reticent.checkpoint import make_folder, replace_file
from reticent.errors import ResumeError, ReticentError
from reticent.experiments.plain import train_plain
from reticent.experiments.recipe import Recipe
from reticent.experiments.record import about_this_machine, describe
from reticent.experiments.training import train
from reticent.run import Run, Step

Tell = Callable[[int, int], None]
Record = dict[str, Any]
Kind = Literal["private", "plain"]


@dataclass(frozen=True, kw_only=True)
class Job:
    """One run: what its folder is called, what tables call it, and its recipe.

    >>> Job(name="dpsgd-eps3-seed0", label="dpsgd", recipe=Recipe(epsilon=3.0, seed=0)).kind
    'private'
    """

    name: str
    label: str
    recipe: Recipe
    kind: Kind = "private"

    def to_json(self) -> dict[str, Any]:
        """The job as plain data, its recipe filled in."""
        return asdict(self) | {"recipe": self.recipe.filled().to_json()}


def perform(job: Job, folder: Path, tell: Tell) -> Record:
    """Run a job, or go on with it, and leave its record in the folder; a failure is a record too."""
    done = stored_record(folder)
    if done is not None and done["status"] == "done":
        return done
    claim(job, folder)
    resumed = (folder / "checkpoint.safetensors").exists()
    wall, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        outcome = _attempt(job, folder, tell)
    record = (
        outcome
        | {
            "wall_seconds": round(time.perf_counter() - wall, 3),
            "cpu_seconds": round(time.process_time() - cpu, 3),
            "resumed": resumed,
            "warnings": sorted({str(warning.message) for warning in raised}),
            "finished": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        }
        | about_this_machine()
    )
    store_record(folder, record)
    return record


def _attempt(job: Job, folder: Path, tell: Tell) -> Record:
    try:
        answer = _private(job, folder, tell) if job.kind == "private" else train_plain(job.recipe, folder, tell=tell)
        return {"status": "done", "error": None} | describe(answer, folder) | _head(job)
    except Exception as error:
        (folder / "error.txt").write_text(traceback.format_exc())
        said = str(error) if isinstance(error, ReticentError) else f"{type(error).__name__}: {error}"
        return failure(job, said)


def _private(job: Job, folder: Path, tell: Tell) -> dict[str, Any]:
    def progress(run: Run, step: Step) -> None:
        tell(step.number, len(run))

    return train(job.recipe, folder, resume=True, progress=progress)


def _head(job: Job) -> Record:
    recipe = job.recipe
    return {
        "run": job.name,
        "label": job.label,
        "kind": job.kind,
        "data": recipe.data,
        "method": recipe.method if job.kind == "private" else "plain",
        "seed": recipe.seed,
        "target_epsilon": recipe.epsilon,
    }


def failure(job: Job, error: str) -> Record:
    """What is recorded of a run that did not get to its end."""
    nothing = {"accuracy": None, "epsilon": None, "guarantee": None, "recipe": job.recipe.to_json()}
    return _head(job) | {"status": "failed", "error": error} | nothing


def store_record(folder: Path, record: Record) -> None:
    """Leave a record in a folder."""
    replace_file(folder / "record.json", json.dumps(record).encode())


def stored_record(folder: Path) -> Record | None:
    """The record of a folder, if there is one."""
    path = folder / "record.json"
    return json.loads(path.read_text()) if path.exists() else None


def claim(job: Job, folder: Path) -> None:
    """Make the folder this job's own; refuse if it holds a run with other settings that has begun."""
    path, mine = folder / "job.json", job.to_json()
    theirs = json.loads(path.read_text()) if path.exists() else None
    changed = _first_change(_flat(theirs), _flat(mine)) if theirs is not None else None
    record = stored_record(folder)
    begun = (folder / "checkpoint.safetensors").exists() or (record is not None and record["status"] == "done")
    if theirs is not None and changed is not None and begun:
        _refuse(folder, changed, _flat(theirs), _flat(mine))
    if theirs is None or changed is not None:
        make_folder(folder)
        replace_file(path, json.dumps(mine, indent=2).encode())


def _first_change(theirs: dict[str, Any], mine: dict[str, Any]) -> str | None:
    """The first setting that differs; one that an older version did not know yet is as good as None."""
    return next((name for name in sorted({*theirs, *mine}) if theirs.get(name) != mine.get(name)), None)


def _refuse(folder: Path, name: str, theirs: dict[str, Any], mine: dict[str, Any]) -> None:
    raise ResumeError(
        f"{folder} holds a run with {name} = {theirs.get(name)!r}, asked for is {mine.get(name)!r}: "
        "go on with the same settings, or give another folder"
    )


def _flat(job: dict[str, Any]) -> dict[str, Any]:
    return {**job["recipe"], **{name: value for name, value in job.items() if name != "recipe"}}
