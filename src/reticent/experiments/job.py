"""A job: one run of many, done in a folder of its own, and the record it leaves there."""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from reticent import data
from reticent.checkpoint import checkpoint_of
from reticent.errors import DataError, FileWarning, PrivacyWarning, ResumeError, ReticentError
from reticent.experiments.attacking import attack_run
from reticent.experiments.measures import of_report, of_uses
from reticent.experiments.plain import train_plain
from reticent.experiments.recipe import Recipe
from reticent.experiments.record import about_this_machine
from reticent.experiments.training import DIAGNOSTICS, train
from reticent.files import make_folder, private_folder, replace_file, stored_at, write_private
from reticent.results import RECORD, Effort, Kind, Result, read_record
from reticent.results.fields import Fields, read_lines
from reticent.results.sealing import read_sealed, seal
from reticent.run import Run, Step

Tell = Callable[[int, int], None]


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
    attack: Mapping[str, object] | None = None
    """How the model is attacked when it is there, in the words of `attack_run`; None: it is not."""

    def finished(self, record: Result | None) -> bool:
        """Whether a record is that of all there is to do."""
        return record is not None and record.done and (self.attack is None or record.attacks is not None)

    def to_json(self) -> dict[str, object]:
        """The job as plain data, its recipe filled in."""
        return asdict(self) | {"recipe": self.recipe.filled().to_json()}


def perform(job: Job, folder: Path, tell: Tell) -> Result:
    """Run a job, or go on with it, and leave its record in the folder; a failure is a record too."""
    before = read_record(folder)
    if before is not None and job.finished(before):
        return before
    claim(job, folder)
    resumed = checkpoint_of(folder).exists()
    wall, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        outcome = _attempt(job, folder, tell)
    effort = Effort(
        wall_seconds=round(time.perf_counter() - wall, 3),
        cpu_seconds=round(time.process_time() - cpu, 3),
        resumed=resumed,
        warnings=_warned(job.recipe, raised, folder),
        finished=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    )
    result = replace(outcome, effort=effort, machine=about_this_machine())
    store_record(folder, result)
    return result


def _attempt(job: Job, folder: Path, tell: Tell) -> Result:
    try:
        answer = _private(job, folder, tell) if job.kind == "private" else train_plain(job.recipe, folder, tell=tell)
        measured = _of_diagnostics(folder) if job.recipe.private_diagnostics else None
        if job.attack is not None:
            measured = (measured or {}) | _attacked(folder, {"seed": job.recipe.seed or 0} | dict(job.attack), tell)
        return replace(answer, run=job.name, label=job.label, attacks=measured)
    except Exception as error:
        whole = private_folder(folder) / "error.txt"
        write_private(whole, traceback.format_exc().encode(errors="replace"))
        return failure(job, _told(error, job.recipe, whole))


def _warned(recipe: Recipe, raised: Sequence[warnings.WarningMessage], folder: Path) -> tuple[str, ...]:
    """The warnings that a record repeats: of one's own examples only those about settings and files, the rest apart."""
    told, kept = set[str](), set[str]()
    for one in raised:
        public = issubclass(one.category, PrivacyWarning | FileWarning) or recipe.data in data.names()
        (told if public else kept).add(str(one.message))
    if kept:
        write_private(private_folder(folder) / "warnings.txt", "\n".join(sorted(kept)).encode(errors="replace"))
    return tuple(sorted(told))


def _told(error: Exception, recipe: Recipe, whole: Path) -> str:
    """What a record says of an error: one about one's own examples may repeat them, and is told in private only."""
    about_settings = isinstance(error, ReticentError) and not isinstance(error, DataError)
    if about_settings or recipe.data in data.names():
        return str(error) if isinstance(error, ReticentError) else f"{type(error).__name__}: {error}"
    return f"{type(error).__name__}: what it says may tell of private examples: see {whole}"


def _private(job: Job, folder: Path, tell: Tell) -> Result:
    def progress(run: Run, step: Step) -> None:
        tell(step.number, len(run))

    return train(job.recipe, folder, resume=True, progress=progress)


def _of_diagnostics(folder: Path) -> dict[str, float]:
    """What private diagnostics of the run measure."""
    path = stored_at(folder, DIAGNOSTICS, "private-diagnostics.jsonl")
    return of_uses([line.data for line in read_lines(path)] if path.exists() else [])


def _attacked(folder: Path, said: Mapping[str, object], tell: Tell) -> dict[str, float]:
    """What attacks on the run measure; shadows and report stay in its folder, and after a crash are gone on with."""
    settings: dict[str, Any] = dict(said)
    if "attacks" in settings:
        settings["attacks"] = [name.strip() for name in settings["attacks"].split(",")]
    return of_report(attack_run(folder, **settings, tell=tell).to_json())


def failure(job: Job, error: str) -> Result:
    """What is recorded of a run that did not get to its end."""
    recipe = job.recipe.to_json()
    return Result(run=job.name, label=job.label, kind=job.kind, recipe=recipe, status="failed", error=error)


def store_record(folder: Path, result: Result) -> None:
    """Leave a record in a folder."""
    replace_file(folder / RECORD, seal(result.to_json()))


def claim(job: Job, folder: Path) -> None:
    """Make the folder this job's own; refuse if it holds a run with other settings that has begun."""
    path, mine = folder / "job.json", _flat(Fields(job.to_json(), job.name))
    theirs = _flat(Fields(read_sealed(path), str(path))) if path.exists() else None
    changed = _first_change(theirs, mine) if theirs is not None else None
    record = read_record(folder)
    begun = checkpoint_of(folder).exists() or (record is not None and record.done)
    if theirs is not None and changed is not None and begun:
        _refuse(folder, changed, theirs, mine)
    if theirs is None or changed is not None:
        make_folder(folder)
        replace_file(path, seal(job.to_json(), indent=2))


def _first_change(theirs: Mapping[str, object], mine: Mapping[str, object]) -> str | None:
    """The first setting that differs; one that an older version did not know yet is as good as None.

    A run that was not attacked may be attacked later: that changes nothing of it.
    """
    later = {"attack"} if theirs.get("attack") is None or mine.get("attack") is None else set[str]()
    names = sorted({*theirs, *mine} - later)
    return next((name for name in names if theirs.get(name) != mine.get(name)), None)


def _refuse(folder: Path, name: str, theirs: Mapping[str, object], mine: Mapping[str, object]) -> None:
    raise ResumeError(
        f"{folder} holds a run with {name} = {theirs.get(name)!r}, asked for is {mine.get(name)!r}: "
        "go on with the same settings, or give another folder"
    )


def _flat(job: Fields) -> dict[str, object]:
    recipe = job.part("recipe")
    return {**({} if recipe is None else recipe.data), **{k: v for k, v in job.data.items() if k != "recipe"}}
