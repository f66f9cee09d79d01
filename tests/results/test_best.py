"""The best we get is what a user gets: presets are the recipes of the records."""

from __future__ import annotations

import json
from pathlib import Path

from reticent.experiments.presets import presets
from reticent.experiments.published import essence_for, essence_of
from reticent.experiments.recipe import recorded
from reticent.experiments.tables import find_table

HERE = Path(__file__).parents[2] / "results"


def test_what_is_recorded_as_the_best_is_what_train_does() -> None:
    asked = {(cell.row, cell.recipe.epsilon): cell for cell in find_table(str(HERE / "best.toml"), "best").cells}
    records = [json.loads(line) for line in (HERE / "best.jsonl").read_text().splitlines()]
    for record in records:
        cell = asked[record["label"], record["recipe"].get("epsilon")]
        assert essence_of(record) == essence_for(cell.recipe, cell.kind), cell.name
    assert len(records) == 3 * len(asked)


def test_presets_name_their_records() -> None:
    tables = presets()["data"].values()
    named = {table["record"] for table in tables if "record" in table}
    named |= {
        part["record"] for table in tables for part in table.values() if isinstance(part, dict) and "record" in part
    }
    cells = find_table(str(HERE / "best.toml"), "best").cells
    assert {row for cell in cells if (row := recorded(cell.recipe)) is not None} == named
    assert all(recorded(cell.recipe) == cell.row for cell in cells if cell.row in named)
