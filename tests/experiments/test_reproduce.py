"""A paper's table again: what is run, what is said before, and what stands beside the printed figure."""

from __future__ import annotations

import csv
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from reticent.accounting import Guarantee
from reticent.cli import app
from reticent.errors import SettingError, UnknownName
from reticent.experiments.cells import TableCell
from reticent.experiments.recipe import Recipe
from reticent.experiments.reproduce import beside, jobs_of, minutes_of
from reticent.experiments.request import method_of
from reticent.experiments.tables import find_table, papers, read_tables
from reticent.results import Effort, Result

TABLE = """
title = "A small paper"

[table.1]
title = "Table 1: digits"
runs = 2
notes = ["a note for the reader"]
shared = { delta = 1e-5, epsilon = [1, 3] }

[[table.1.row]]
name = "digits-dpsur"
data = "digits"
method = "dpsur"
lr = [0.5, 1.0]
epochs = 1
validation_batch_size = 32
as_claimed = { noise_multiplier = [4.0, 2.0] }
printed = [70.0, 80.0]
minutes = [0.1, 0.2]
ours = ["lr"]

[[table.1.row]]
name = "digits-dpsgd"
data = "digits"
method = "dpsgd"
epochs = 1
printed = [71.0, 81.0]
minutes = 0.1
"""


@pytest.fixture
def small(tmp_path: Path) -> str:
    path = tmp_path / "small.toml"
    path.write_text(TABLE)
    return str(path)


def call(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["reproduce", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout


def test_every_cell_of_every_paper_is_a_run_that_can_begin() -> None:
    """Names, options and the columns of every experiment file; no paper of the mission is missing."""
    assert set(papers()) == {"dpis", "dpsign", "dpsur", "handcrafted", "pd-sgd", "sa-dpsgd"}
    for paper in papers():
        for table in read_tables(paper)[1]:
            claimed = [cell for cell in table.cells if cell.as_claimed is not None]
            for cells, epsilon in ((table.cells, "proved"), (claimed, "claimed")):
                assert not cells or jobs_of(cells, 1, epsilon)
            assert table.cells or table.notes or table.left_out, f"{table.title}: nothing runs, and nobody says why"
            assert len({cell.name for cell in table.cells}) == len(table.cells)
            for cell in table.cells:
                assert 0 <= cell.printed.get("accuracy", 0) <= 100, cell.name
                assert cell.minutes is not None, cell.name


def test_the_steps_are_chosen_with_the_same_effort_and_without_the_test_examples() -> None:
    for table in read_tables("results/steps.toml")[1]:
        jobs_of(table.cells, 1, "proved")
        tried = Counter((cell.recipe.data, cell.row, cell.recipe.epsilon) for cell in table.cells)
        for data in {data for data, _, _ in tried}:  # methods are compared on the same examples
            assert len({count for (on, _, _), count in tried.items() if on == data}) == 1
        for cell in table.cells:
            method_of(cell.recipe)
            assert cell.recipe.validation == (5000 if cell.recipe.data == "imdb" else 10_000)


def test_a_column_has_its_own_settings(small: str) -> None:
    first, second = find_table(small, "1").chosen("digits-dpsur-*")
    assert (first.recipe.epsilon, first.recipe.lr, first.recipe.options["validation_batch_size"]) == (1.0, 0.5, 32)
    assert (second.recipe.epsilon, second.recipe.lr, second.minutes) == (3.0, 1.0, 0.2)
    assert second.printed == {"accuracy": 80.0}
    assert second.as_claimed is not None
    assert (second.as_claimed.epsilon, second.as_claimed.noise_multiplier, second.as_claimed.epochs) == (
        None,
        2.0,
        None,
    )


def test_a_measure_that_nobody_can_read_is_told_when_the_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "faulty.toml"
    path.write_text(TABLE.replace("[70.0, 80.0]", "{ accurracy = [70.0, 80.0] }"))
    with pytest.raises(UnknownName, match="did you mean 'accuracy'"):
        read_tables(str(path))


def test_cells_are_chosen_by_pattern_and_a_wrong_one_is_named(small: str) -> None:
    table = find_table(small, "1")
    assert [cell.name for cell in table.chosen("*-eps3,digits-dpsgd-eps1")] == [
        "digits-dpsur-eps3",
        "digits-dpsgd-eps3",
        "digits-dpsgd-eps1",
    ]
    with pytest.raises(UnknownName, match="mnist-x"):
        table.chosen("mnist-x")
    with pytest.raises(UnknownName, match="7"):
        find_table(small, "7")
    with pytest.raises(UnknownName, match="dpsur"):
        read_tables("nobody")


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ('title = "A small paper"', "", "'title' is missing"),
        ("[0.5, 1.0]", "[0.5]", "fewer entries than columns"),
        ("[70.0, 80.0]", "[70.0]", "prints 1 numbers of accuracy in 2 columns"),
        ("[70.0, 80.0]", "[70.0, 80.0, 90.0]", "prints 3 numbers"),
    ],
)
def test_a_faulty_file_is_told_from_a_faulty_program(tmp_path: Path, before: str, after: str, says: str) -> None:
    path = tmp_path / "faulty.toml"
    path.write_text(TABLE.replace(before, after))
    with pytest.raises(SettingError, match=says):
        read_tables(str(path))


def test_time_is_known_only_if_every_cell_has_one(small: str) -> None:
    cells = find_table(small, "1").cells
    assert minutes_of(cells, seeds=2, processes=1) == pytest.approx(1.0)
    assert minutes_of([replace(cells[0], minutes=None), cells[1]], seeds=1, processes=1) is None


@pytest.mark.slow
def test_ours_stands_beside_the_papers(small: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = (small, "--table", "1", "--cells", "*-eps3", "--seeds", "2", "--out", str(out), "--json")
    code, said = call(*arguments)
    assert code == 0
    rows = json.loads(said)["rows"]
    assert [row["cell"] for row in rows] == ["digits-dpsur-eps3", "digits-dpsgd-eps3"]
    for row in rows:
        assert row["seeds"] == 2
        assert 2.9 < row["epsilon"] <= 3.0
        assert row["measure"] == "accuracy"
        assert row["low"] <= row["value"] <= row["high"]
        assert row["difference"] == pytest.approx(row["value"] - row["printed"])
    assert rows[0]["claimed_epsilon"] > 0, "DPSUR has a rule of its own"
    assert rows[1]["claimed_epsilon"] is None, "DP-SGD has none but the proved one"
    assert [row["cell"] for row in csv.DictReader((out / "reproduced.csv").read_text().splitlines())] == [
        row["cell"] for row in rows
    ]
    before = {path: path.stat().st_mtime_ns for path in out.glob("runs/*/record.json")}
    assert json.loads(call(*arguments)[1])["rows"] == rows
    assert {path: path.stat().st_mtime_ns for path in before} == before, "what is done is not done again"


def test_as_claimed_takes_the_papers_noise_and_proves_what_that_costs(small: str, tmp_path: Path) -> None:
    arguments = ("--cells", "digits-dpsur-eps3", "--as-claimed", "--out", str(tmp_path / "out"), "--json")
    code, said = call(small, "--table", "1", *arguments)
    assert code == 0
    (row,) = json.loads(said)["rows"]
    assert 0 < row["epsilon"] != row["claimed_epsilon"]
    assert 2.9 < row["claimed_epsilon"] <= 3.0, "kept updates are as many as the paper's rule gives the epsilon for"
    record = json.loads(Path(json.loads(said)["results"]).read_text())
    assert record["kept"] == record["rounds"]
    assert (record["noise_multiplier"], record["run"]) == (2.0, "digits-dpsur-eps3-as-claimed-seed0")


def test_without_the_papers_noise_as_claimed_is_refused(small: str) -> None:
    with pytest.raises(SettingError, match="does not state"):
        jobs_of(find_table(small, "1").chosen("digits-dpsgd-eps1"), 1, "claimed")


def test_what_will_run_and_for_how_long_is_said_before(small: str) -> None:
    _, said = call(small, "--table", "1", "--list", "--seeds", "3")
    assert "digits-dpsur-eps3: about 0.2 min a run; ours, not the paper's: lr" in said
    assert "a note for the reader" in said
    assert "4 cells, 3 seeds: about 2 minutes" in said
    _, listed = call(small, "--table", "1", "--list", "--json")
    assert json.loads(listed)[0]["cell"] == "digits-dpsur-eps1"


def test_papers_and_tables_are_listed() -> None:
    _, said = call()
    assert all(paper in said for paper in papers())
    _, one = call("dpsign", "--json")
    assert [row["number"] for row in json.loads(one) if row["kind"] == "table"][:3] == ["3", "4", "5"]


def test_failed_runs_are_counted_apart() -> None:
    cell = TableCell(row="r", column="", recipe=Recipe(epsilon=1.0), printed={"accuracy": 50.0})
    good = Result(
        run="r-seed0",
        label="r",
        recipe=cell.recipe.to_json(),
        accuracy=0.6,
        guarantee=Guarantee("proved", 1.0, 1e-5),
        effort=Effort(cpu_seconds=6.0),
    )
    bad = Result(run="r-seed1", label="r", recipe=cell.recipe.to_json(), status="failed", error="no luck")
    (row,) = beside(cell, [good, bad])
    assert (row.seeds, row.failed, row.value, row.minutes) == (1, 1, 60.0, 0.1)
    (nothing,) = beside(cell, [bad])
    assert (nothing.value, nothing.epsilon, nothing.difference, nothing.failed) == (None, None, None, 1)
