"""Published records: what is told of a run in a file that goes with the project, and which runs are the same."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from reticent import catalogue, data
from reticent.experiments.recipe import Recipe

Record = dict[str, Any]
PAPERS = "papers.jsonl"
"""The runs of the papers' tables."""
UNPUBLISHED = (
    "sha256",
    "class_names",
    "classes",
    "confusion",
    "epsilon_by_round",
    "stages",
    "warnings",
    "error",
    "status",
    "wall_seconds",
    "optimizer",
)
"""What nobody needs to check or repeat a run."""
NO_SETTING = ("seed", "data_folder", "private_diagnostics", "max_physical_batch_size", "options", "curve")
"""What does not change what a run is about; a curve only looks at it."""


def slim(record: Record) -> Record:
    """What a reader needs to check or repeat a run, without any path.

    >>> slim({"accuracy": 0.9, "status": "done", "recipe": {"lr": 1.0, "epochs": None, "data_folder": "/home/me"}})
    {'accuracy': 0.9, 'recipe': {'lr': 1.0}}
    """
    recipe = {name: value for name, value in record["recipe"].items() if value is not None and value != {}}
    recipe.pop("data_folder", None)
    return {name: value for name, value in record.items() if name not in UNPUBLISHED} | {"recipe": recipe}


def to_lines(records: Iterable[Record]) -> str:
    """Records as lines of JSON."""
    return "".join(json.dumps(record) + "\n" for record in records)


def read_published(folder: Path) -> list[Record]:
    """Every run that the files of a folder tell of."""
    lines = (line for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines())
    return [record for record in map(json.loads, lines) if "recipe" in record]


def essence(recipe: Mapping[str, Any], kind: str = "private") -> str:
    """Equal for two (filled) recipes that differ in nothing but their seed, and in where they were run.

    Whatever stands at its default is left out: a setting that did not exist yet is as good as its default.

    >>> essence(Recipe(epsilon=3.0, seed=1).to_json()) == essence({"data": "digits", "method": "dpsgd", "epsilon": 3})
    True
    """
    usual = Recipe().to_json() | {"data": None, "method": None}
    settings = {name: value for name, value in recipe.items() if name not in NO_SETTING and value != usual.get(name)}
    settings["data"] = data.resolve(recipe["data"])
    defaults = catalogue.options(recipe["method"])
    options = {name: value for name, value in (recipe.get("options") or {}).items() if value != defaults.get(name)}
    return json.dumps([kind, _floats(settings), _floats(options)], sort_keys=True)


def essence_of(record: Record) -> str:
    """The essence of a recorded run: what its rule filled in, nobody had asked for."""
    by_rule = record.get("by_rule", ())
    said = {name: value for name, value in record["recipe"].items() if name not in by_rule}
    return essence(said, record["kind"])


def mark_of(record: Record) -> str:
    """The essence of a recorded run and of what else was looked at: its curve, and how it was attacked."""
    return marked(essence_of(record), record.get("attack"), record["recipe"].get("curve"))


def marked(essence: str, attack: Mapping[str, object] | None, curve: int | None) -> str:
    """What tells runs apart that are the same training: how they were attacked, and whether they have a curve.

    >>> marked("[]", None, None), marked("[]", {"models": 4}, 40)
    ('[]', '[][{"models": 4.0}, 40]')
    """
    looks = [None if attack is None else _floats(attack), curve]
    return essence if looks == [None, None] else essence + json.dumps(looks, sort_keys=True)


def essence_for(recipe: Recipe, kind: str = "private") -> str:
    """The essence of a run that a recipe asks for."""
    return essence(dataclasses.asdict(recipe.filled()), kind)


def _floats(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Whole numbers as floats: 1 and 1.0 are one setting."""
    whole = {name: isinstance(value, int) and not isinstance(value, bool) for name, value in settings.items()}
    return {name: float(value) if whole[name] else value for name, value in settings.items()}
