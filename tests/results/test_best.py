"""The best we get is what a user gets: presets are the recipes of the records."""

from __future__ import annotations

import json
from pathlib import Path

from reticent.experiments.published import essence_for, essence_of
from reticent.experiments.recipe import read_recipe
from reticent.experiments.tables import find_table


def test_what_is_recorded_as_the_best_is_what_train_does() -> None:
    here = Path(__file__).parents[2] / "results"
    asked = {(cell.row, cell.recipe.epsilon): cell for cell in find_table(str(here / "best.toml"), "best").cells}
    records = [json.loads(line) for line in (here / "best.jsonl").read_text().splitlines()]
    for record in records:
        cell = asked[record["label"], record["recipe"].get("epsilon")]
        assert essence_of(record) == essence_for(cell.recipe, cell.kind), cell.name
    assert len(records) == 3 * len(asked)
    of_presets = {"adult", "cifar10", "fashion-mnist", "imdb", "location30-means", "mnist"}
    for (row, epsilon), cell in asked.items():
        if row in of_presets:
            plain = read_recipe(None, {"data": cell.recipe.data, "delta": 1e-5, "epsilon": epsilon}, suited=True)
            assert plain == cell.recipe
