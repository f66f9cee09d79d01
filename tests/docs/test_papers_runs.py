"""The runner of the papers' tables: each run once, the most useful first, and a published record of each."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from reticent.experiments.published import essence, essence_for
from reticent.experiments.recipe import Recipe
from reticent.experiments.wanted import MAIN

SCRIPT = Path(__file__).parents[2] / "results" / "papers.py"
MINE = """
title = "Mine"
[table.1]
title = "Digits"
shared = { data = "digits", delta = 1e-5, lr = 0.5, batch_size = 300 }
[[table.1.row]]
name = "short"
epsilon = [3]
epochs = 1
printed = [80.0]
minutes = [0.1]
[[table.1.row]]
name = "slow"
epsilon = [3]
epochs = 2
minutes = [4]
[[table.1.row]]
name = "short-again"
epsilon = [3]
epochs = 1.0
minutes = [0.2]
as_claimed = { noise_multiplier = [8.0] }
[[table.1.row]]
name = "attacked"
epsilon = [3]
epochs = 1
printed = { "loss.auc" = [0.5] }
attack = { models = 4, records = 50, attacks = "loss" }
minutes = [0.3]
[[table.1.row]]
name = "endless"
epsilon = [3]
minutes = [60]
[[table.1.row]]
name = "elsewhere"
data = "purchase100"
epsilon = [3]
minutes = [1]
"""


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, with one small paper and a folder of records of its own."""
    spec = importlib.util.spec_from_file_location("papers_runner", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    mine = tmp_path / "mine.toml"
    mine.write_text(MINE)
    monkeypatch.setenv("RETICENT_DATA", str(tmp_path / "nothing"))
    monkeypatch.setattr(module, "papers", lambda: [str(mine)])
    monkeypatch.setattr(module, "HERE", tmp_path)
    monkeypatch.setattr(module, "RECORDS", tmp_path / "papers.jsonl")
    return module


def names(runner: ModuleType, seeds: int, held: set[tuple[str, int]]) -> list[tuple[str, bool, int]]:
    possible = [one for one in runner.wanted(runner.papers()) if runner.obstacle(one, 15.0) is None]
    return [(one.cell.row, one.claimed, job.recipe.seed) for one, job in runner.planned(possible, seeds, held)]


def test_each_run_once_the_cheap_first_and_what_is_held_not_at_all(runner: ModuleType) -> None:
    once = [("attacked", False, 0), ("slow", False, 0), ("short-again", True, 0)]
    assert names(runner, 1, set()) == once, "the run that is attacked serves the others too"
    assert names(runner, 2, set()) == [*once, ("attacked", False, 1), ("short-again", True, 1)]
    attacked = next(one for one in runner.wanted(runner.papers()) if one.attack)
    assert names(runner, 1, {(attacked.mark, 0)}) == once[1:]
    assert names(runner, 1, {(attacked.essence, 0)}) == once, "it ran, but nobody attacked it"


def test_the_tables_that_a_claim_stands_on_come_first(runner: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = Path(runner.papers()[0])
    mine.write_text(MINE + MINE[MINE.index("[table.1]") :].replace("table.1", "table.2").replace("300", "200"))
    assert [row for row, *_ in names(runner, 1, set())] == 2 * ["attacked"] + 2 * ["slow"] + 2 * ["short-again"]
    monkeypatch.setitem(MAIN, str(mine), ("2",))
    possible = [one for one in runner.wanted(runner.papers()) if runner.obstacle(one, 15.0) is None]
    found = [(one.table.number, one.cell.row) for one, _ in runner.planned(possible, 1, set())]
    of_one = found.index(("1", "attacked"))
    assert of_one == found.index(("2", "slow")) - 1, "what serves no printed number comes last all the same"
    assert found[:of_one] == [("2", "attacked")]


def test_one_run_serves_whoever_asks_for_the_same() -> None:
    asked = Recipe(data="fmnist", method="dpsur", epsilon=1.0, seed=3)
    assert essence_for(asked) == essence_for(Recipe(data="fmnist", method="dpsur", epsilon=1.0, data_folder="there"))
    assert essence_for(asked) != essence_for(Recipe(data="fmnist", method="dpsur", epsilon=2.0))
    settings = asked.filled().to_json()
    spelled = settings | {"data": "fashion-mnist", "options": settings["options"] | {"validation_noise": 1.3}}
    assert essence(spelled) == essence_for(asked), "an option at its default was not said, for all that matters"
    assert essence(settings, "plain") != essence(settings)
    assert essence(settings | {"curve": 40}) == essence(settings), "looking on changes nothing"


def test_runs_leave_records_without_paths_and_are_not_done_again(
    runner: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(tmp_path / "out"), "--papers", runner.papers()[0], "--jobs", "2"]
    runner.main(runner.asked_for([*words, "--minutes", "0"]))
    assert not list(tmp_path.glob("out/runs/*/record.json")), "the time was over before it began"
    runner.main(runner.asked_for(words))
    text = runner.RECORDS.read_text()
    records = [json.loads(line) for line in text.splitlines()]
    assert sorted(record["recipe"]["epochs"] for record in records) == [1.0, 2.0]
    assert [record["attacks"].keys() >= {"loss.auc"} for record in records if "attack" in record] == [True]
    assert all(record["command"].startswith("reticent reproduce ") for record in records)
    assert str(tmp_path / "out") not in text
    runner.main(runner.asked_for([*words, "--collect"]))
    assert runner.RECORDS.read_text() == text
    capsys.readouterr()
    runner.main(runner.asked_for(words))
    assert "0 runs, " in capsys.readouterr().out
    Path(runner.papers()[0]).write_text(MINE.replace("epochs = 2", "epochs = 3"))
    runner.main(runner.asked_for([*words, "--collect"]))
    kept = [json.loads(line)["recipe"]["epochs"] for line in runner.RECORDS.read_text().splitlines()]
    assert kept == [1.0], "no cell asks for the other any more"
