"""How the papers stand: which runs serve a cell, what counts as near, and what is counted once."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reticent.accounting import Guarantee
from reticent.errors import SettingError
from reticent.experiments.recipe import Recipe
from reticent.experiments.standing import standing
from reticent.experiments.tables import find_table
from reticent.report.papers import PaperCounts, PaperNumber
from reticent.report.papers_markdown import UNEXPLAINED, opening, page, side_by_side

MINE = """
title = "Mine"
[table.1]
title = "Table 1: digits"
figures = 6
shared = { data = "digits", delta = 1e-5 }
[[table.1.row]]
name = "theirs"
epsilon = [1, 3]
printed = [80.0, 90.0]
as_claimed = { noise_multiplier = [4.0, 2.0] }
minutes = 0.1
[[table.1.row]]
name = "as-coded"
beside = "theirs"
epsilon = [1, 3]
lr = 2.0
as_claimed = { noise_multiplier = [4.0, 2.0] }
[[table.1.row]]
name = "elsewhere"
epsilon = 3
data = "location30"
printed = 60.0
stand_in = "Location-30 for data that nobody has"
[[table.1.row]]
name = "attacked"
epsilon = 3
lr = 4.0
printed = { "lira.auc" = 0.55 }
attack = { models = 4 }
[[table.1.left_out]]
what = "two more"
figures = 2
why = "no time"
"""


def record(recipe: Recipe, accuracy: float, seed: int = 0, **more: Any) -> dict[str, Any]:
    """A published record, as `collect` writes it."""
    epsilon = recipe.epsilon or 1.5
    return {
        "run": f"run-seed{seed}",
        "label": "dpsgd",
        "kind": "private",
        "seed": seed,
        "accuracy": accuracy,
        "guarantee": Guarantee("proved", epsilon, 1e-5).to_json(),
        "rounds": 10,
        "kept": 10,
        "recipe": replace(recipe.filled(), seed=seed).to_json(),
        "finished": "2026-01-01",
        **more,
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an experiment file and records of most of its cells."""
    (tmp_path / "mine.toml").write_text(MINE)
    cells = {cell.name: cell for cell in find_table(str(tmp_path / "mine.toml"), "1").cells}
    claimed = cells["as-coded-eps3"].as_claimed
    assert claimed is not None
    records = [
        record(cells["theirs-eps1"].recipe, 0.80, 0),
        record(cells["theirs-eps1"].recipe, 0.81, 1),
        record(cells["theirs-eps3"].recipe, 0.85),
        record(claimed, 0.895),
        record(cells["elsewhere-eps3"].recipe, 0.6),
        record(cells["attacked-eps3"].recipe, 0.9, attack={"models": 4}, attacks={"lira.auc": 0.56}),
        record(cells["attacked-eps3"].recipe, 0.9, attack={"models": 8}, attacks={"lira.auc": 0.99}),
    ]
    (tmp_path / "papers.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    return tmp_path


def numbers(folder: Path) -> dict[str, PaperNumber]:
    table = standing(folder, [str(folder / "mine.toml")])[0].tables[0]
    return {number.cell: number for number in table.numbers}


def test_numbers_stand_beside_the_printed_ones(folder: Path) -> None:
    found = numbers(folder)
    ours = found["theirs-eps1"].proved
    assert ours is not None
    assert (ours.spread.mean, ours.seeds, ours.epsilon) == (pytest.approx(80.5), 2, 1.0)
    assert found["theirs-eps1"].near_proved
    assert not found["theirs-eps1"].near_own, "as claimed it was not run"
    assert found["theirs-eps3"].differs
    assert found["as-coded-eps3"].near_own
    assert (found["theirs-eps3"].at, found["theirs-eps3"].changing) == (3.0, "epsilon")


def test_figures_of_an_attack_are_those_of_the_same_attack(folder: Path) -> None:
    ours = numbers(folder)["attacked-eps3"].proved
    assert ours is not None
    assert ours.spread.mean == 0.56


def test_what_stands_beside_a_row_counts_with_it_and_a_stand_in_counts_apart(folder: Path) -> None:
    counts = standing(folder, [str(folder / "mine.toml")])[0].counts
    assert counts == PaperCounts(printed=6, entered=4, run=3, stand_ins=1, near_own=2, near_proved=2)


def test_the_tables_say_it(folder: Path) -> None:
    paper = standing(folder, [str(folder / "mine.toml")])[0]
    assert "| all | 6 | 4 | 3 | 1 | 2 | 2 |" in opening([paper])
    assert "| theirs | 80.00 / – / 80.50 | 90.00 / – / 85.00 | 1 to 2 |" in side_by_side(paper.tables[0])
    text = page(paper)
    assert f"| theirs-eps3 | accuracy | 90.00 |  |  | 85.00 | 3.00 | 1 | {UNEXPLAINED} |" in text
    assert "Stand-in: Location-30 for data that nobody has." in text
    assert "- two more (2): no time" in text


def test_reasons_are_shown_and_must_be_about_a_cell(folder: Path) -> None:
    mine = folder / "mine.toml"
    reason = f'[[reason]]\npaper = "{mine}"\ntable = "table 1"\ncells = "theirs-*"\nwhy = "another step"\n'
    (folder / "reasons.toml").write_text(reason)
    paper = standing(folder, [str(mine)])[0]
    assert "| 3.00 | 1 | another step |" in page(paper)
    (folder / "reasons.toml").write_text(reason.replace("theirs-*", "ours-*"))
    with pytest.raises(SettingError, match=r"no cell of .*ours"):
        standing(folder, [str(mine)])
