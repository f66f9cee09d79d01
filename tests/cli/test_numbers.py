"""A number to predict on the command line, from the file to the page: schema, train, predict, export, refusals."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from tests import quick
from typer.testing import CliRunner, Result

import reticent as rt
from reticent import data
from reticent.cli import app
from reticent.errors import SettingError

TRAIN = ("train", "--data", "train.csv", "--schema", "schema.toml", "--test-data", "test.csv", "--seed", "0")
QUICK = ("--epsilon", "8", "--epochs", "20", "--batch-size", "60", "--out", "run")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def said(*arguments: str) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


@pytest.fixture
def houses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Prices of houses, by their rooms and their town; the schema is the proposed one."""
    monkeypatch.chdir(tmp_path)
    coins = random.Random(0)
    for name, count in (("train", 600), ("test", 200)):
        rows = ["rooms,town,price"]
        for _ in range(count):
            rooms, town = coins.randrange(1, 8), coins.choice("AB")
            rows.append(f"{rooms},{town},{100 + 40 * rooms + 60 * (town == 'A') + coins.gauss(0, 4):.2f}")
        Path(f"{name}.csv").write_text("\n".join(rows) + "\n")
    Path("schema.toml").write_text(said("data", "schema", "train.csv", "--label", "price"))
    return tmp_path


def test_the_range_of_a_number_is_proposed_and_marked(houses: Path) -> None:
    text = (houses / "schema.toml").read_text()
    assert "target = { low = 100, high = 500 }    # READ FROM THE RECORDS" in text
    assert data.read_schema("schema.toml").target is not None
    refused = run("train", "--data", "train.csv", "--label", "price", "--epsilon", "1")
    assert "the range of 'price'" in str(refused.exception)


@pytest.mark.usefixtures("houses")
def test_whole_numbers_of_a_few_values_stay_classes() -> None:
    assert "classes" in data.propose({"x": [1.0] * 60, "y": [0, 1, 2] * 20}, label="y").content


@pytest.mark.usefixtures("houses")
def test_it_is_trained_measured_predicted_and_exported() -> None:
    words = said(*TRAIN, *QUICK)
    assert "errors     MAE" in words
    assert "always the mean: MAE" in words
    answer = json.loads(said(*TRAIN, *QUICK, "--resume", "--json"))
    assert answer["accuracy"] is None
    assert answer["metrics"]["r2"] > 0.5
    assert 1 < answer["metrics"]["mae"] < answer["metrics"]["baseline_mae"] < 200, "in the number's own units"
    assert answer["recipe"]["lr"] <= 0.5, "the longest step of the rule where a number is predicted"
    predicted = said("predict", "run", "test.csv").split()
    assert predicted[0] == "prediction"
    assert all(50 < float(one) < 600 for one in predicted[1:])
    assert len(predicted) == 201
    found = rt.load("run").evaluate("test.csv", task="regression")
    assert found["mae"] == pytest.approx(answer["metrics"]["mae"], rel=1e-4)
    said("report", "run")
    assert "Always answering the mean" in Path("run", "report.html").read_text()
    assert "ok    price" in said("verify", "run")
    said("export", "run", "model")
    alone = quick.run(quick.ALONE + quick.SCRIPT, "model.py", "../test.csv", where=Path("model").resolve())
    assert alone.returncode == 0, alone.stderr
    assert [float(one) for one in alone.stdout.split()] == pytest.approx(
        [float(one) for one in predicted[1:]], rel=1e-4
    )


@pytest.mark.usefixtures("houses")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("compare", "--data", "train.csv", "--schema", "schema.toml", "--out", "c"), "compared by accuracy"),
        ((*TRAIN, "--method", "selena"), "defends classifiers"),
        (("tune", "--data", "train.csv", "--schema", "schema.toml", "--epsilon", "3", "--aside", "99"), "--aside-is-p"),
    ],
)
def test_what_needs_classes_says_so_before_anything_is_trained(words: tuple[str, ...], told: str) -> None:
    refused = run(*words)
    assert isinstance(refused.exception, SettingError)
    assert told in str(refused.exception)


@pytest.mark.usefixtures("houses", "one_probe")
def test_a_run_is_audited_but_not_attacked() -> None:
    said(*TRAIN, *QUICK)
    refused = run("attack", "run")
    assert "need a classifier" in str(refused.exception)
    assert "canaries need a classifier" in str(run("audit", "run", "--canaries", "9", "--runs", "20").exception)
    report: dict[str, Any] = json.loads(said("audit", "run", "--runs", "20", "--seed", "0", "--json"))
    assert report["verdict"] == "consistent"
    with pytest.raises(SettingError, match="no classes"):
        raise run("predict", "run", "test.csv", "--probabilities").exception or AssertionError


@pytest.mark.usefixtures("houses")
def test_a_description_file_may_have_a_number_too() -> None:
    Path("own.toml").write_text('name = "Houses"\ntrain = "train.csv"\ntest = "test.csv"\nschema = "schema.toml"\n')
    found = data.load("own.toml")
    assert found.numeric
    assert found.train.y.is_floating_point()


@pytest.mark.usefixtures("houses")
def test_tables_are_named_alike_in_every_command() -> None:
    """What the error about a missing schema advises is an option wherever it is raised."""
    named = ("--data", "train.csv", "--schema", "schema.toml")
    assert "epsilon  noise" in said("plan", *named, "--what-if", "--epsilons", "1")
    assert "noise_multiplier" in said("plan", *named, "--epsilon", "1")
    few = ("--try", "lr=0.1", "--trials", "1.5", "--set", "epochs=1", "--seed", "0", "--aside", "99")
    assert "chosen     lr 0.1" in said("tune", *named, "--epsilon", "8", "--aside-is-public", *few)
