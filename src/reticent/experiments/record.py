"""A record: what a run and its folder tell beyond the answer of training: classes, ledger, epsilon over rounds."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby
from pathlib import Path

import numpy as np
import torch
from torch import nn

import reticent
from reticent import checkpoint
from reticent.accounting import Adjacency, Entry, Event, Guarantee, price
from reticent.accounting.event_json import from_json
from reticent.accounting.ledger import read_entries
from reticent.accounting.pricing import Accountant
from reticent.data import Dataset
from reticent.experiments.judging import confused, per_class, shown
from reticent.experiments.people import people_of, set_aside
from reticent.experiments.recipe import Recipe
from reticent.results import LedgerFacts, Machine, Result

PACKAGES = ("torch", "numpy", "scipy", "dp-accounting")
POINTS = 12
"""How many points the curve of epsilon over rounds has."""
TOLERANCE = 1e-6


@dataclass(frozen=True)
class FromCheckpoint:
    """What a private run wrote into its checkpoint before its first round."""

    stages: str | None = None
    already: tuple[Event, ...] = ()
    """What was released before it, of the same examples."""


def described(result: Result, recipe: Recipe, dataset: Dataset, model: nn.Module) -> Result:
    """The result of a finished run, with what its data tell besides."""
    matrix = None if dataset.test is None else confused(model, *dataset.test)
    return replace(
        result,
        examples=recipe.size or len(people_of(recipe, set_aside(dataset.train, recipe.holdout)[0])),
        dataset=dataset.name,
        class_names=dataset.names,
        classes=None if matrix is None else per_class(matrix),
        confusion=None if matrix is None else shown(matrix),
    )


def with_ledger(result: Result, folder: Path) -> Result:
    """The result of a finished run, with what its folder tells besides."""
    declared = declared_in(folder)
    ledger, points = from_ledger(folder / "ledger.jsonl", result.guarantee, declared.already)
    return replace(result, stages=declared.stages, ledger=ledger, epsilon_by_round=points)


def declared_in(folder: Path) -> FromCheckpoint:
    """What the checkpoint of a private run says about it; nothing for runs outside the pipeline."""
    path = checkpoint.checkpoint_of(folder)
    settings = checkpoint.read(path).get("settings", {}) if path.exists() else {}
    return FromCheckpoint(settings.get("method"), tuple(from_json(event) for event in settings.get("already", [])))


Points = tuple[tuple[int, float], ...]


def from_ledger(
    path: Path, guarantee: Guarantee, already: Iterable[Event] = ()
) -> tuple[LedgerFacts | None, Points | None]:
    """What the ledger itself tells: how many releases, a fingerprint, and epsilon as the rounds went by."""
    if not path.exists():
        return None, None
    ledger = read_entries(path)
    facts = LedgerFacts(entries=len(ledger), sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    return facts, curve_to(guarantee, ledger, already)


def curve_to(guarantee: Guarantee, entries: Iterable[Entry], already: Iterable[Event] = ()) -> Points | None:
    """Epsilon as the rounds went by, if it leads to the guarantee."""
    accountant: Accountant = "rdp" if guarantee.accountant == "rdp" else "best"
    points = epsilon_by_round(entries, guarantee.delta, accountant, already, guarantee.adjacency)
    # A filter promises its whole budget whatever was used of it: there is no curve that leads to it.
    ends_there = points and abs(points[-1][1] - guarantee.epsilon) < TOLERANCE
    return tuple(points) if ends_there else None


def epsilon_by_round(
    entries: Iterable[Entry],
    delta: float,
    accountant: Accountant = "best",
    already: Iterable[Event] = (),
    adjacency: Adjacency = "zero-out",
) -> list[tuple[int, float]]:
    """Epsilon of what was released before the run and in it up to some rounds, the first and the last among them.

    >>> from reticent.accounting import Gaussian
    >>> entries = [Entry(round=0, query=0, event=Gaussian(4.0), seal="")]
    >>> [(number, round(epsilon, 2)) for number, epsilon in epsilon_by_round(entries, 1e-5)]
    [(1, 0.93)]
    """
    rounds = [list(made) for _, made in groupby(sorted(entries, key=_round), key=_round)]
    wanted = set(np.linspace(1, len(rounds), min(len(rounds), POINTS)).astype(int).tolist())
    seen: Counter[Event] = Counter(already)
    points = []
    for number, made in enumerate(rounds, start=1):
        seen.update(entry.event for entry in made)
        if number in wanted:
            points.append((number, price(seen, delta, accountant=accountant, adjacency=adjacency).epsilon))
    return points


def _round(entry: Entry) -> int:
    return entry.round


def about_this_machine() -> Machine:
    """What a reader needs to repeat a run elsewhere: versions, commit, machine."""
    return Machine(
        name=f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        threads=torch.get_num_threads(),
        commit=commit(),
        versions={"reticent": reticent.__version__, "python": platform.python_version()}
        | {name: _version(name) for name in PACKAGES},
    )


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def commit() -> str | None:
    """The commit this code is at, with a plus if it was changed since; None where it is not a checkout."""
    here = Path(reticent.__file__).parent
    if _git(here, "ls-files", "--error-unmatch", "__init__.py") is None:
        return None  # installed somewhere inside another project's checkout, or without git
    changed = "+" if _git(here, "status", "--porcelain", ".") else ""
    return f"{_git(here, 'rev-parse', 'HEAD')}{changed}"


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
