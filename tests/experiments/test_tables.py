"""Experiment files: tables and figures, numbers by measure, what is left out, what stands in, plain rows, attacks."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from reticent.cli import app
from reticent.errors import SettingError, UnknownName
from reticent.experiments.cells import cells_of
from reticent.experiments.recipe import Recipe, check
from reticent.experiments.reproduce import jobs_of
from reticent.experiments.tables import find_table, papers, read_tables
from reticent.results import read_record

FILE = """
title = "Another small paper"

[table.1]
title = "Table 1: digits"
figures = 9
shared = { data = "digits", delta = 1e-5, epsilon = [1, 3], epochs = 1 }

[[table.1.row]]
name = "attacked"
method = "dpsgd"
attack = { models = 4, records = 100, attacks = "lira,population" }
printed = { accuracy = [70.0, 80.0], "lira.auc" = [0.5, nan], "lira.tpr_at_0.001" = [0.1, 0.1] }
minutes = 0.1

[[table.1.row]]
name = "other"
method = "dpsign_sgd"
beside = "attacked"
stand_in = "signs for sums"
minutes = 0.1

[[table.1.row]]
name = "no-privacy"
kind = "plain"
printed = 95.0
minutes = 0.1

[[table.1.left_out]]
what = "a network that nobody has"
figures = 3
why = "its weights are not public"

[figure.2]
title = "Figure 2: a plot"
figures = 0

[[figure.2.row]]
name = "sweep"
columns = ["b32", "b64"]
data = "digits"
method = "dpsgd"
epsilon = 3
batch_size = [32, 64]
epochs = 1
minutes = 0.1
"""


@pytest.fixture
def paper(tmp_path: Path) -> str:
    path = tmp_path / "paper.toml"
    path.write_text(FILE)
    return str(path)


def call(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["reproduce", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_printed_numbers_are_counted_once(paper: str) -> None:
    table = find_table(paper, "1")
    assert (table.printed, table.entered, table.left_out[0].figures) == (9, 6, 3)
    assert [dict(cell.printed) for cell in table.chosen("other-*")] == [
        {"accuracy": 70.0, "lira.auc": 0.5, "lira.tpr_at_0.001": 0.1},
        {"accuracy": 80.0, "lira.tpr_at_0.001": 0.1},
    ]


def test_figures_are_found_apart_from_tables(paper: str) -> None:
    assert [(table.kind, table.number) for table in read_tables(paper)[1]] == [("table", "1"), ("figure", "2")]
    assert [cell.recipe.batch_size for cell in find_table(paper, "2", "figure").cells] == [32.0, 64.0]
    with pytest.raises(UnknownName, match="table"):
        find_table(paper, "2")
    with pytest.raises(SettingError, match="not both"):
        call(paper, "--table", "1", "--figure", "2")


def test_a_figure_without_runs_is_listed_and_refused(paper: str) -> None:
    path = Path(paper)
    path.write_text(
        FILE + '\n[figure.3]\ntitle = "Figure 3: a drawing"\nnotes = ["no run is behind it"]\nfigures = 0\n'
    )
    assert "no run is behind it" in call(paper, "--figure", "3", "--list")
    with pytest.raises(SettingError, match="--list says why"):
        call(paper, "--figure", "3")


def test_everything_is_listed_and_counted(paper: str) -> None:
    said = call(paper, "--list")
    assert "(9 numbers printed, 6 with an entry)" in said
    assert "--figure 2    Figure 2: a plot (2 cells; 0 numbers printed, 0 with an entry)" in said
    first, second = json.loads(call(paper, "--json"))
    assert (first["printed"], first["entered"], first["left_out"][0]["figures"]) == (9, 6, 3)
    assert (second["kind"], second["cells"]) == ("figure", 2)
    plan = call(paper, "--table", "1", "--list")
    assert "stands in: signs for sums" in plan
    assert "left out: a network that nobody has (3 numbers): its weights are not public" in plan


def test_a_plain_row_is_trained_without_privacy_whatever_the_others_share(paper: str) -> None:
    (cell,) = find_table(paper, "1").chosen("no-privacy")
    assert (cell.kind, cell.recipe.epsilon) == ("plain", None)
    (job,) = (job for _, job in jobs_of([cell], 1, "proved"))
    assert job.kind == "plain"


def test_an_attack_with_a_misspelt_setting_is_refused_before_anything_runs(paper: str) -> None:
    Path(paper).write_text(FILE.replace("models = 4", "modles = 4"))
    with pytest.raises(UnknownName, match="modles"):
        jobs_of(find_table(paper, "1").cells, 1, "proved")


def test_a_row_for_each_printed_measure_attack_included(paper: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = (paper, "--table", "1", "--cells", "attacked-eps1,other-eps1", "--out", str(out))
    said = call(*arguments)
    assert "attacked-eps1 lira.auc" in said
    assert "other-eps1*" in said
    assert "* stands in: signs for sums" in said
    assert "no lira.tpr_at_0.001: the runs were not attacked so, or on too few records" in said
    read = (out / "reproduced.csv").read_text()
    rows = {(row["cell"], row["measure"]): row for row in csv.DictReader(read.splitlines())}
    assert len(rows) == 6
    assert 0.2 < float(rows["attacked-eps1", "lira.auc"]["value"]) < 0.8
    assert rows["other-eps1", "lira.auc"]["value"] == "", "it is not attacked"
    assert rows["other-eps1", "accuracy"]["stand_in"] == "signs for sums"
    record = read_record(out / "runs" / "attacked-eps1-seed0")
    assert record is not None
    assert record.attacks is not None
    assert {"lira.auc", "population.balanced", "best.auc"} <= record.attacks.keys()
    assert (out / "runs" / "attacked-eps1-seed0" / "private" / "attack" / "attack.json").exists()
    shadows = sorted(out.glob("runs/attacked-*/private/attack/shadow-*.safetensors"))
    times = {path: path.stat().st_mtime_ns for path in shadows}
    assert len(times) == 4
    (out / "runs" / "attacked-eps1-seed0" / "record.json").unlink()
    shadows[3].unlink()
    call(*arguments)
    assert [path for path in shadows if path.stat().st_mtime_ns != times[path]] == [shadows[3]], "only what is missing"
    assert read_record(out / "runs" / "attacked-eps1-seed0").attacks == record.attacks  # type: ignore[union-attr]


def test_a_run_can_be_attacked_later_but_not_otherwise(paper: str, tmp_path: Path) -> None:
    out, path = tmp_path / "out", Path(paper)
    arguments = (paper, "--table", "1", "--cells", "attacked-eps1", "--out", str(out))
    attack = 'attack = { models = 4, records = 100, attacks = "lira,population" }'
    path.write_text(FILE.replace(attack, ""))
    assert "no lira.auc: the runs were not attacked so" in call(*arguments)
    model = next(out.glob("runs/*/model.safetensors"))
    before = model.stat().st_mtime_ns
    path.write_text(FILE)
    assert "no lira.auc" not in call(*arguments)
    assert model.stat().st_mtime_ns == before, "it is not trained again"


def test_the_example_in_the_docs_is_an_experiment_file(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "reproduce.md").read_text()
    path = tmp_path / "mine.toml"
    path.write_text(text.split("```toml\n")[1].split("```")[0])
    (table,) = read_tables(str(path))[1]
    assert table.figures == table.entered + sum(one.figures for one in table.left_out)
    assert len(jobs_of(table.cells, 1, "proved")) == 5
    assert len(jobs_of(table.chosen("digits-dpsur-*"), 1, "claimed")) == 2


def test_a_clip_norm_that_a_table_shares_is_not_for_methods_without_one() -> None:
    rows = [{"name": "a", "method": "auto_s", "epsilon": [3]}, {"name": "b", "epsilon": [3]}]
    with_none, with_one = cells_of(rows, {"data": "digits", "max_grad_norm": 0.1})
    assert (with_none.recipe.max_grad_norm, with_one.recipe.max_grad_norm) == (None, 0.1)
    with pytest.raises(SettingError, match="no clip norm"):
        check(Recipe(method="auto_s", max_grad_norm=0.1))


def test_every_entry_can_be_run() -> None:
    cells = [cell for name in papers() for table in read_tables(name)[1] for cell in table.cells]
    for cell in cells:
        for recipe in filter(None, (cell.recipe, cell.as_claimed)):
            check(recipe.filled())
