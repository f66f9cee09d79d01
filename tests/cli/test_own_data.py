"""A table from the raw file to class names, on the command line: schema, train, predict, export, and back in Python."""

from __future__ import annotations

import csv
import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner, Result

import reticent as rt
from reticent.accounting.ledger import read_entries
from reticent.audits.stored import check_stored
from reticent.cli import app
from reticent.data.loading.places import data_folder
from reticent.errors import DataError, ModelError, ResumeError, SettingError
from reticent.experiments.recipe import Recipe
from reticent.experiments.training import train
from reticent.models import names as models

HEADER = (
    "age,workclass,fnlwgt,education,education-num,marital-status,occupation,relationship,race,sex,capital-gain,"
    "capital-loss,hours-per-week,native-country,income"
)
QUICK = ("--epochs", "1", "--batch-size", "64", "--lr", "1", "--epsilon", "3", "--seed", "0")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def said(*arguments: str) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


@pytest.fixture
def adult(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A few hundred of the real records, as a user would have them; made-up ones where there are none."""
    monkeypatch.chdir(tmp_path)
    for part, file in (("train", "adult.data.gz"), ("test", "adult.test.gz")):
        found = data_folder() / "adult" / file
        if not found.exists():
            pytest.skip(f"adult is not in {data_folder()}: set $RETICENT_DATA or run `reticent data get adult`")
        with gzip.open(found, "rt") as lines:
            records = [line.strip().rstrip(".") for line in lines if line.count(",") == 14][:600]
        Path(f"{part}.csv").write_text("\n".join([HEADER, *records]) + "\n")
    return tmp_path


@pytest.mark.data
@pytest.mark.usefixtures("adult")
def test_adult_from_the_raw_file_to_class_names() -> None:
    refused = run("train", "--data", "train.csv", "--epsilon", "3")
    assert "--accept-schema" in str(refused.exception)
    assert not Path("run").exists()
    Path("schema.toml").write_text(said("data", "schema", "train.csv"))
    assert "READ FROM THE RECORDS" in Path("schema.toml").read_text()
    said("data", "check", "train.csv")
    given = ("--schema", "schema.toml", "--test-data", "test.csv", *QUICK, "--out", "run", "--json")
    result = json.loads(said("train", "--data", "train.csv", *given))
    assert result["accuracy"] > 0.7
    assert any("schema.json, declared" in text for text in result["guarantee"]["assumptions"])
    predicted = said("predict", "run", "test.csv").splitlines()
    assert predicted[0] == "prediction"
    with Path("test.csv").open() as lines:
        truth = [row["income"].strip() for row in csv.DictReader(lines, skipinitialspace=True)]
    right = sum(one == other for one, other in zip(predicted[1:], truth, strict=True)) / len(truth)
    assert right == pytest.approx(result["accuracy"], abs=1e-3)
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    trained = rt.load("run")
    for read in (pandas.read_csv, polars.read_csv):
        frame = read("test.csv")
        assert trained.predict(frame) == predicted[1:]


@pytest.mark.data
@pytest.mark.usefixtures("adult")
def test_an_accepted_proposal_is_told_as_such() -> None:
    result = json.loads(said("train", "--data", "train.csv", "--accept-schema", "--label", "sex", *QUICK, "--json"))
    assert any("accepted as they were read" in text for text in result["guarantee"]["assumptions"])
    assert result["accuracy"] is None


# --- without Reticent ----------------------------------------------------------------------------------------------

ROWS = [(20 + row % 50, ("north", "south", "")[row % 3], 100 * (row % 7), ("no", "yes")[row % 2]) for row in range(300)]
SCHEMA = """
label = "ill"
classes = ["no", "yes"]
[columns.age]
low = 0
high = 100
[columns.ward]
values = ["north", "south"]
indicator = true
[columns.dose]
low = 0
high = 1000
"""
ALONE = """
import sys
sys.modules["reticent"] = None  # whoever imports it fails
sys.path.insert(0, sys.argv[1])
import model
print("\\n".join(model.predict(sys.argv[2])))
"""


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = ["age,ward,dose,ill", *(",".join(map(str, row)) for row in ROWS)]
    Path("people.csv").write_text("\n".join(lines) + "\n")
    Path("schema.toml").write_text(SCHEMA)
    return tmp_path


def trained(**more: object) -> Recipe:
    settings: dict[str, object] = {"data": "people.csv", "schema": "schema.toml", "epochs": 1.0, "batch_size": 64.0}
    return Recipe(**{**settings, "lr": 1.0, "noise_multiplier": 2.0, "seed": 0, **more})  # type: ignore[arg-type]


@pytest.mark.usefixtures("people")
@pytest.mark.parametrize(
    "more",
    [{"model": "mlp"}, {"model": "mlp", "activation": "tempered(2,2,1)", "centre": 20.0, "statistics_noise": 20.0}],
)
def test_an_exported_model_answers_alike_in_plain_pytorch(more: dict[str, object]) -> None:
    train(trained(**more), Path("run"))
    expected = said("predict", "run", "people.csv").splitlines()[1:]
    assert said("export", "run", "out").strip() == "out/model.py"
    command = [sys.executable, "-c", ALONE, "out", "people.csv"]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout.splitlines() == expected


@pytest.mark.usefixtures("people")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_one_file_forms_answer_alike() -> None:
    train(trained(), Path("run"))
    model = rt.load("run")
    x = model.inputs("people.csv")
    expected = model.model(x)
    program = torch.export.load(rt.export(model, "out", "torch-export")).module()
    torch.testing.assert_close(program(x), expected)
    traced = torch.jit.load(rt.export(model, "out", "torchscript"))
    torch.testing.assert_close(traced(x[:7]), expected[:7])
    with pytest.raises(ModelError, match=r"reticent\[onnx\]"):
        rt.export(model, "out", "onnx")
    with pytest.raises(SettingError, match="plain, torch-export, torchscript, onnx"):
        rt.export(model, "out", "pdf")


def test_what_cannot_be_written_down_says_what_can(tmp_path: Path) -> None:
    class Own(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(2, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x)  # type: ignore[no-any-return]

    examples = torch.rand(50, 2), torch.randint(0, 2, (50,))
    own = rt.fit(Own(), examples, noise_multiplier=2.0, epochs=1, seed=0)
    with pytest.raises(ModelError, match=r"Own cannot be written down.*torch-export"):
        rt.export(own, tmp_path)
    with pytest.raises(SettingError, match="Give example="):
        rt.export(own, tmp_path, "torch-export")
    assert rt.export(own, tmp_path, "torch-export", example=torch.rand(2, 2)).exists()
    own.save(tmp_path / "own")
    with pytest.raises(ResumeError, match="give the module"):
        rt.load(tmp_path / "own")
    with pytest.raises(DataError, match="does not know how its examples were read"):
        own.inputs("people.csv")


# --- models come back without their module -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings", [{}, {"centre": 50.0}, {"statistics_noise": 50.0}, {"model": "mlp", "activation": "relu"}]
)
def test_a_network_of_ours_is_built_again(settings: dict[str, object], tmp_path: Path) -> None:
    recipe = Recipe(data="digits", noise_multiplier=4.0, epochs=1.0, seed=0, **settings)  # type: ignore[arg-type]
    result = train(recipe, tmp_path)
    found = rt.load(tmp_path)
    test = rt.data.load("digits").test
    assert test is not None
    assert found.evaluate(*test)["accuracy"] == result.accuracy
    assert found.predict(test.x[:2]).shape == (2, 10)


def test_every_network_of_ours_knows_how_it_is_built() -> None:
    shapes = {"rnn": (80,), "scattering-linear": (81, 7, 7), "scattering-cnn": (81, 7, 7)}
    for name in models():
        blueprint = rt.models.Blueprint(model=name, inputs=shapes.get(name, (3, 32, 32)), classes=3)
        again = rt.models.Blueprint.from_json(json.loads(json.dumps(blueprint.to_json())))
        assert again == blueprint
        assert again.build().state_dict().keys() == blueprint.build().state_dict().keys()


# --- means in the place of missing cells ---------------------------------------------------------------------------

NOISY = SCHEMA.replace("high = 1000", 'high = 1000\nfill = "noisy"')


@pytest.mark.usefixtures("people")
def test_a_noisy_fill_is_released_charged_and_kept() -> None:
    Path("schema.toml").write_text(NOISY)
    text = Path("people.csv").read_text().splitlines()
    holes = [line.replace(",600,", ",,") if ",600," in line else line for line in text]
    Path("people.csv").write_text("\n".join(holes) + "\n")
    with pytest.raises(SettingError, match="fill_noise"):
        train(trained())
    result = train(trained(fill_noise=1.0), Path("run"))
    assert len(list(read_entries(Path("run/fill.jsonl")))) == 1
    assert check_stored(Path("run"), result.guarantee).holds
    plain = train(trained(fill_noise=100.0))
    assert result.guarantee.epsilon > plain.guarantee.epsilon
    found = rt.load("run")
    expected = (
        sum(100 * (row % 7) for row in range(300) if row % 7 != 6) / 1000 / sum(row % 7 != 6 for row in range(300))
    )
    filled = found.model[0].mean  # type: ignore[index]
    assert float(filled[-1]) == pytest.approx(expected, abs=0.03)
    assert filled[:-1].tolist() == [0.5] * (len(filled) - 1)
    assert torch.isfinite(found.model(found.inputs("people.csv"))).all()


@pytest.mark.usefixtures("people")
def test_a_noisy_fill_goes_with_a_model_of_ones_own() -> None:
    Path("schema.toml").write_text(NOISY)
    text = Path("people.csv").read_text().splitlines()
    Path("people.csv").write_text("\n".join(line.replace(",600,", ",,") for line in text) + "\n")
    examples = rt.data.table("people.csv", "schema.toml")
    width = examples.x.shape[1]
    said: dict[str, Any] = {"noise_multiplier": 2.0, "epochs": 1, "seed": 0, "delta": 1e-5}
    with pytest.raises(SettingError, match="fill_noise"):
        rt.fit(torch.nn.Linear(width, 2), examples, **said)
    with pytest.raises(SettingError, match="fill_noise"):
        rt.fit(torch.nn.Linear(4, 2), (torch.rand(50, 4), torch.arange(50) % 2), fill_noise=2.0, **said)
    done = rt.fit(torch.nn.Linear(width, 2), examples, fill_noise=1.0, folder="own", **said)
    assert len(list(read_entries(Path("own/fill.jsonl")))) == 1
    assert rt.verify("own").ok
    assert float(done.model[0].mean[-1]) != 0.5  # type: ignore[index, arg-type]
    again = rt.load("own", torch.nn.Linear(width, 2))
    assert again.predict("people.csv") == done.predict("people.csv")


@pytest.mark.usefixtures("people")
def test_a_bad_cell_stops_before_training_and_check_finds_it() -> None:
    Path("people.csv").write_text(Path("people.csv").read_text().replace("20,north", "old,north", 1))
    refused = run("train", "--data", "people.csv", "--schema", "schema.toml", *QUICK, "--out", "run")
    assert "column 'age' is not a number" in str(refused.exception)
    assert "old" not in str(refused.exception)
    found = run("data", "check", "people.csv", "--json")
    assert (found.exit_code, json.loads(found.stdout)) == (1, [{"line": 2, "column": "age", "says": "not a number"}])


def test_an_onnx_model_takes_any_number_of_rows(tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    runtime = pytest.importorskip("onnxruntime")
    x, y = torch.rand(60, 4), torch.arange(60) % 2
    done = rt.fit(torch.nn.Sequential(torch.nn.Linear(4, 2)), (x, y), noise_multiplier=2.0, epochs=1, seed=0)
    session = runtime.InferenceSession(str(rt.export(done, tmp_path, "onnx", example=x[:2])))
    for rows in (1, 2, 7):
        (answers,) = session.run(None, {"inputs": x[:rows].numpy()})
        assert torch.allclose(torch.from_numpy(answers), done.predict(x[:rows]), atol=1e-6)
