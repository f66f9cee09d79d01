"""A record: everything about one run that tables, pages and readers may want, as plain data on one line."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from collections import Counter
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import torch

import reticent
from reticent import checkpoint
from reticent.accounting import Adjacency, Entry, Event, Ledger, price
from reticent.accounting.adjacency import read_adjacency
from reticent.accounting.events import from_json
from reticent.accounting.pricing import Accountant
from reticent.data import Dataset
from reticent.experiments.parts import model_of
from reticent.experiments.recipe import Recipe
from reticent.experiments.training import examples, set_aside
from reticent.fitting import load, predict

PACKAGES = ("torch", "numpy", "scipy", "dp-accounting")
POINTS = 12
"""How many points the curve of epsilon over rounds has."""
TOLERANCE = 1e-6


def describe(answer: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The fields of a record that follow from a finished run and its folder."""
    recipe = Recipe(**answer["recipe"])
    guarantee = answer["guarantee"]
    dataset, settings = examples(recipe), settings_of(folder)
    already = [from_json(event) for event in settings.get("already", [])]
    return {
        "examples": recipe.size or len(set_aside(dataset.train, recipe.holdout)[0]),
        "model": recipe.model,
        "accuracy": answer["accuracy"],
        "accuracy_on": answer["accuracy_on"],
        "classes": per_class(recipe, dataset, folder),
        "epsilon": guarantee["epsilon"],
        "delta": guarantee["delta"],
        "claimed_epsilon": (guarantee["as_claimed"] or {}).get("epsilon"),
        "guarantee": guarantee,
        "rounds": answer["rounds"],
        "kept": answer["kept"],
        "noise_multiplier": answer["noise_multiplier"],
        "optimizer": answer.get("optimizer"),
        "stages": settings.get("method"),
        "recipe": answer["recipe"],
        **from_ledger(folder / "ledger.jsonl", guarantee, already),
    }


def per_class(recipe: Recipe, dataset: Dataset, folder: Path) -> list[dict[str, Any]] | None:
    """How the stored model does on each class of the test examples; None without any."""
    if dataset.test is None:
        return None
    model = load(folder, model_of(recipe, dataset)).model
    right = predict(model, dataset.test.x).argmax(1) == dataset.test.y
    return [
        {"class": number, "examples": int(mine.sum()), "accuracy": float(right[mine].double().mean())}
        for number in range(dataset.classes)
        if (mine := dataset.test.y == number).any()
    ]


def settings_of(folder: Path) -> dict[str, Any]:
    """What the checkpoint of a private run says about it; nothing for runs outside the pipeline."""
    path = folder / "checkpoint.safetensors"
    return dict(checkpoint.read(path).get("settings", {})) if path.exists() else {}


def from_ledger(path: Path, guarantee: dict[str, Any], already: Iterable[Event] = ()) -> dict[str, Any]:
    """What the ledger itself tells: how many releases, a fingerprint, and epsilon as the rounds went by."""
    if not path.exists():
        return {"ledger": None, "epsilon_by_round": None}
    ledger = Ledger(path)
    about = {"entries": len(ledger), "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    accountant: Accountant = "rdp" if guarantee["accountant"] == "rdp" else "best"
    adjacency = read_adjacency(guarantee["adjacency"])
    points = epsilon_by_round(ledger, guarantee["delta"], accountant, already, adjacency)
    # A filter promises its whole budget whatever was used of it: there is no curve that leads to it.
    ends_there = points and guarantee["epsilon"] and abs(points[-1][1] - guarantee["epsilon"]) < TOLERANCE
    return {"ledger": about, "epsilon_by_round": points if ends_there else None}


def epsilon_by_round(
    ledger: Ledger,
    delta: float,
    accountant: Accountant = "best",
    already: Iterable[Event] = (),
    adjacency: Adjacency = "zero-out",
) -> list[tuple[int, float]]:
    """Epsilon of what was released before the run and in it up to some rounds, the first and the last among them.

    >>> from reticent.accounting import Gaussian
    >>> ledger = Ledger(); _ = ledger.record(Entry(round=0, query=0, event=Gaussian(4.0), seal=""))
    >>> [(number, round(epsilon, 2)) for number, epsilon in epsilon_by_round(ledger, 1e-5)]
    [(1, 0.93)]
    """
    rounds = [list(entries) for _, entries in groupby(sorted(ledger, key=_round), key=_round)]
    wanted = set(np.linspace(1, len(rounds), min(len(rounds), POINTS)).astype(int).tolist())
    seen: Counter[Event] = Counter(already)
    points = []
    for number, entries in enumerate(rounds, start=1):
        seen.update(entry.event for entry in entries)
        if number in wanted:
            points.append((number, price(seen, delta, accountant=accountant, adjacency=adjacency).epsilon))
    return points


def _round(entry: Entry) -> int:
    return entry.round


def about_this_machine() -> dict[str, Any]:
    """What a reader needs to repeat a run elsewhere: versions, commit, machine."""
    return {
        "versions": {"reticent": reticent.__version__, "python": platform.python_version()}
        | {name: _version(name) for name in PACKAGES},
        "commit": commit(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "threads": torch.get_num_threads(),
    }


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
