"""Runs by person from a table, as a user of the command line meets them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from reticent.cli import app
from reticent.data import Examples, load, make_canaries, plant, table
from reticent.data.loading.opening import Declaration
from reticent.errors import DataError, ReticentError, SettingError
from reticent.experiments.people import set_aside

PERSONS = 120


@pytest.fixture
def visits(tmp_path: Path) -> str:
    """A table of visits, one to six for each patient, with its schema and description."""
    rng = np.random.default_rng(0)
    whose = np.repeat(np.arange(PERSONS), rng.integers(1, 7, PERSONS))
    lines = [f"P{person:03d},{rng.integers(18, 90)},{rng.choice(['yes', 'no'])}" for person in whose]
    (tmp_path / "train.csv").write_text("patient_id,age,ill\n" + "\n".join(lines) + "\n")
    (tmp_path / "test.csv").write_text("age,ill\n50,yes\n60,no\n")
    (tmp_path / "schema.toml").write_text('label="ill"\nclasses=["no","yes"]\n[columns.age]\nlow=0\nhigh=100\n')
    description = tmp_path / "visits.toml"
    description.write_text('train="train.csv"\ntest="test.csv"\nschema="schema.toml"\n')
    return str(description)


def answer(*arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


def train(visits: str, *more: str) -> tuple[str, ...]:
    quick = ("--model", "linear", "--batch-size", "20", "--lr", "0.5", "--epochs", "2", "--seed", "0", "--epsilon", "3")
    return "train", "--data", visits, *quick, "--json", *more


def test_a_column_says_whose_the_rows_are(visits: str, tmp_path: Path) -> None:
    said = answer(*train(visits, "--groups", "patient_id", "--out", str(tmp_path / "run")))
    assert said["guarantee"]["unit"] == "person"
    assert said["guarantee"]["delta"] == 1e-5
    assert said["rounds"] == 2 * PERSONS // 20
    assert said["recipe"]["groups"] == "patient_id"
    card = json.loads((tmp_path / "run" / "card.json").read_text())
    assert card["guarantee"]["unit"] == "person"
    with pytest.raises(SettingError, match="whole persons"):
        CliRunner().invoke(app, ["attack", str(tmp_path / "run")], catch_exceptions=False)


@pytest.mark.parametrize("how", [("--schema", "schema.toml"), ("--accept-schema",)])
def test_a_table_by_its_path(visits: str, how: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """A proposed schema leaves the persons out: their names are no input."""
    monkeypatch.chdir(Path(visits).parent)
    said = answer(*train("train.csv", *how, "--groups", "patient_id", "--out", "run", "--label", "ill"))
    assert said["guarantee"]["unit"] == "person"
    assert any("public knowledge" in text for text in said["guarantee"]["assumptions"])
    stored = json.loads(Path("run/schema.json").read_text())
    assert stored["columns"].get("patient_id", {"skip": True}) == {"skip": True}


def test_a_data_frame_has_its_column_of_persons(visits: str) -> None:
    schema = Path(visits).parent / "schema.toml"
    frame = {"who": ["b", "a", "b"], "age": [20, 30, 40], "ill": ["yes", "no", "no"]}
    rows = table(frame, schema, groups="who")
    assert rows.groups is not None
    assert rows.groups.tolist() == [0, 1, 0]
    with pytest.raises(DataError, match="schema"):
        table(frame, schema)


def test_means_centres_and_caps_are_by_person(visits: str) -> None:
    settings = ("--set", "most_rows=2", "--set", "centre=20", "--set", "validation=20", "--size", "100")
    with pytest.raises(SettingError, match="set aside"):
        answer(*train(visits, "--groups", "patient_id", *settings))
    said = answer(*train(visits, "--groups", "patient_id", *settings[:-2]))
    assert said["guarantee"]["unit"] == "person"
    assert "20 training persons" in said["accuracy_on"]
    assert said["rounds"] == 2 * (PERSONS - 20) // 20


def test_what_it_costs_is_told_by_person(visits: str) -> None:
    told = answer("account", "--data", visits, "--set", "groups=patient_id", "--epochs", "2", "--batch-size", "20",
                  "--noise-multiplier", "2", "--json")  # fmt: skip
    assert told["unit"] == "person"


@pytest.mark.parametrize(("more", "says"), [
    (("--groups", "doctor_id"), "doctor_id"),
    ((), "patient_id"),
    (("--set", "most_rows=3"), "groups"),
    (("--groups", "patient_id", "--holdout", "10", "--method", "sa_dpsgd"), "hold-out"),
    (("--groups", "patient_id", "--method", "selena"), "promises nothing"),
    (("--groups", "patient_id", "--set", "most_rows=0"), "above 0"),
])  # fmt: skip
def test_what_is_not_by_person_is_refused_before_the_start(visits: str, more: tuple[str, ...], says: str) -> None:
    with pytest.raises(ReticentError, match=says):
        CliRunner().invoke(app, list(train(visits, *more)), catch_exceptions=False)


def test_a_row_of_nobody_is_refused(visits: str) -> None:
    table = Path(visits).parent / "train.csv"
    table.write_text(table.read_text() + ",50,yes\n")
    with pytest.raises(DataError, match="whose it is"):
        load(visits, declared=Declaration(groups="patient_id"))


def test_arrays_have_their_persons_in_a_file_beside(tmp_path: Path) -> None:
    arrays = {"x": np.zeros((4, 2), np.float32), "y": np.arange(4) % 2, "who": np.array(["b", "a", "b", "c"])}
    for name, values in arrays.items():
        np.save(tmp_path / f"{name}.npy", values)
    (tmp_path / "own.toml").write_text('classes=2\ntrain=["x.npy","y.npy"]\n')
    np.savez(tmp_path / "own.npz", **arrays, classes=np.array(["no", "yes"]))
    for name, groups in (("own.toml", "who.npy"), ("own.npz", "who")):
        train = load(str(tmp_path / name), declared=Declaration(groups=groups)).train
        assert train.groups is not None
        assert train.groups.tolist() == [0, 1, 0, 2]
        with pytest.raises(DataError, match="whose each row is"):
            load(str(tmp_path / name), declared=Declaration(groups="nobody"))
    with pytest.raises(DataError, match="digits"):
        load("digits", declared=Declaration(groups="writer"))


def test_a_canary_is_a_person_and_persons_are_set_aside_whole() -> None:
    rows = Examples(torch.rand(9, 2), torch.arange(9) % 2, groups=torch.arange(9) // 3)
    planted = plant(rows, make_canaries(rows, 4, classes=2), seed=0)
    count = int(planted.included.sum())
    assert planted.train.groups is not None
    assert planted.train.groups.tolist() == [*rows.groups.tolist(), *range(3, 3 + count)]  # type: ignore[union-attr]
    private, public = set_aside(rows, 1)
    assert public is not None
    assert not set(private.groups.tolist()) & set(public.groups.tolist())  # type: ignore[union-attr]
    with pytest.raises(SettingError, match="3 persons"):
        set_aside(rows, 3)
