"""What may be published: canaries in every kind of input, and no trace of them in any artefact that is not private."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from tests.cli.planting import BAD, CANARY, SECRET, WHOLE, Words, arrays, found_in
from torch import nn
from typer.testing import CliRunner, Result

import reticent as rt
from reticent import data
from reticent.cli import app
from reticent.errors import DataError, ReticentError
from reticent.experiments.job import Job, perform
from reticent.experiments.recipe import parse_changes, read_recipe
from reticent.experiments.sweep import write_results
from reticent.files import PRIVATE, README

FEW = ("--set", "epochs=2", "--set", "batch_size=20")
SOURCES = {
    "csv": "people.csv",
    "groups": "people.csv",
    "parquet": "people.parquet",
    "feather": "people.feather",
    "npz": "own.npz",
    "npy": "x.npy",
    "images": "photos/ill",
}


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder of its own, with all that is kept between runs in it too."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RETICENT_CACHE", str(tmp_path / "out" / "cache"))
    monkeypatch.setenv("RETICENT_LEDGER", "out/ledger.sqlite")


def run(*words: str) -> Result:
    """What came of a command; what it refuses is told on the terminal of whoever has the data."""
    said = CliRunner().invoke(app, words)
    if said.exception is not None and not isinstance(said.exception, SystemExit | ReticentError):
        raise said.exception
    return said


def open_to_all(folder: Path) -> dict[str, bytes]:
    """Every file of a folder that is not in a private one."""
    files = {path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()}
    return {str(name): path.read_bytes() for name, path in files.items() if PRIVATE not in name.parts}


def leaks(folder: Path) -> dict[str, list[str]]:
    """What is in the files that may be published and must not be; and who may read those that may not."""
    for path in folder.rglob("*"):
        if PRIVATE in path.relative_to(folder).parts and path.is_file() and path.name != README:
            assert path.stat().st_mode & 0o077 == 0, path
    return {name: found for name, content in open_to_all(folder).items() if (found := found_in(content))}


def released(*words: str) -> None:
    """Do it; what it answers may be published."""
    said = run(*words)
    assert said.exit_code == 0, (words, said.exception, said.output)
    assert found_in(said.stdout.encode()) == [], words


def private(*words: str) -> str:
    """Do it; what it answers is private. All that it says of that."""
    said = run(*words)
    assert said.exit_code == 0, (words, said.exception, said.output)
    told = run(*words[:1], *words[1:2] if words[0] == "data" else (), "--help").stdout
    return " ".join((said.stderr + told).split())


QUICK = {"csv", "csv, a cell", "groups, nobody", "parquet, a label", "npz, labels", "npy, inputs", "images, no image"}


def some(kinds: Iterable[str]) -> list[Any]:
    """One of each kind now, the rest with the slow tests."""
    return [kind if kind in QUICK else pytest.param(kind, marks=pytest.mark.slow) for kind in kinds]


@pytest.mark.parametrize("kind", some(WHOLE))
def test_no_canary_is_in_what_commands_release(kind: str) -> None:
    words, source = WHOLE[kind](), SOURCES[kind]
    released("train", *words, *FEW, "--epsilon", "3", "--set", "private_diagnostics=true", "--out", "out/a", "--json")
    assert "is private" in private("audit", "out/a", "--runs", "20", "--canaries", "0", "--seed", "0")
    if kind != "groups":  # shadows of persons are not made
        assert "is private" in private("attack", "out/a", "--models", "4", "--records", "20", "--attacks", "loss,lira")
    for command in (("report", "out/a"), ("verify", "out/a"), ("export", "out/a", "out/model")):
        released(*command)
    released("plan", *words[:2], *_declared(words), "--epsilon", "3")
    released("ledger", "create", "people", "--epsilon", "8", "--delta", "1e-5", *_of_persons(kind))
    released("train", *words, *FEW, "--epsilon", "3", "--dataset", "people", "--size", "100", "--out", "out/c")
    released("ledger", "history", "people")
    search = ("--aside", "10", "--trials", "2", "--try", "lr=0.5,1", "--seed", "0", "--out", "out/t")
    if kind != "groups":
        released("tune", *words, *FEW, "--epsilon", "3", *search)
    if kind != "csv":
        released("compare", *words, *FEW, "--methods", "dpsgd", "--epsilons", "3", "--jobs", "1", "--out", "out/b")
    assert leaks(Path("out")) == {}
    found = open_to_all(Path("out"))
    expected = {"model.safetensors", "report.html", "card.json", "result.json", "rounds.jsonl", "recipe.json"}
    assert {f"a/{name}" for name in expected} <= found.keys()
    kept = {path.name for path in Path("out/a/private").iterdir()}
    assert {README, "checkpoint.safetensors", "diagnostics.jsonl", "audit.json"} <= kept
    assert "as private as" in private("predict", "out/a", source, "--out", "out/answers.csv")
    assert Path("out/answers.csv").stat().st_mode & 0o077 == 0
    assert "private" in private("doctor", *words, "--rows", "4")
    if kind != "npy":
        assert "private records" in private("data", "schema", "photos" if kind == "images" else source)


def _declared(words: Words) -> Words:
    return ("--schema", "schema.toml") if "schema=schema.toml" in words else ()


def _of_persons(kind: str) -> Words:
    return ("--unit", "person") if kind == "groups" else ()


@pytest.mark.parametrize("kind", some(BAD))
def test_no_canary_is_in_the_record_of_a_failed_run(kind: str) -> None:
    """As a worker of a comparison does it, with data that was right when the comparison began."""
    words, out = BAD[kind](), Path("out")
    said = dict(zip(words[::2], words[1::2], strict=True))
    changes = [value for name, value in zip(words[::2], words[1::2], strict=True) if name == "--set"]
    given = {"data": said["--data"], "model": said.get("--model"), "epsilon": 3.0, "seed": 0}
    job = Job(name="a", label="a", recipe=read_recipe(None, given | parse_changes(changes)))
    record = perform(job, out / "runs" / "a", lambda _done, _total: None)
    write_results(out)
    run("report", "out")
    assert leaks(out) == {}
    assert {"results.jsonl", "report.html", "runs/a/record.json"} <= open_to_all(out).keys()
    assert record.status == "failed"
    assert record.error is not None
    whole = Path(record.error.rpartition("see ")[2])
    assert whole.parent.name == PRIVATE
    assert "Error" in whole.read_text()
    said_by_train = run("train", *words, *FEW, "--epsilon", "3", "--out", "out/t")
    assert isinstance(said_by_train.exception, ReticentError)
    assert leaks(out) == {}


def test_warnings_about_private_columns_are_not_in_a_record() -> None:
    x, y = arrays()
    x[20:60, 1] = np.nan
    np.savez("own.npz", x=x, y=y, classes=np.array(["no", "yes"]))
    recipe = read_recipe(None, {"data": "own.npz", "epsilon": 30.0, "epochs": 1.0, "seed": 0})
    record = perform(Job(name="a", label="a", recipe=recipe), Path("out"), lambda _done, _total: None)
    assert record.effort is not None
    assert [text for text in record.effort.warnings if "missing" in text] == []
    assert any("promises next to nothing" in text for text in record.effort.warnings), "what is public is told"
    assert "input columns 1 have missing" in Path("out/private/warnings.txt").read_text()
    assert b"missing numbers" not in b"".join(open_to_all(Path("out")).values())


class Telling:
    """Examples of which one cannot be read, for a reason that repeats it."""

    def __init__(self, bad: tuple[int, ...]):
        self.x, self.y = (torch.from_numpy(part) for part in arrays())
        self.bad = bad

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, row: int) -> tuple[torch.Tensor, torch.Tensor]:
        if row in self.bad:
            raise ValueError(f"{CANARY} cannot be {SECRET}")
        return self.x[row], self.y[row]


def _arrow(bad: bool) -> Any:
    x, y = arrays()
    columns = {"a": x[:, 0].astype(float), "y": y, "name": [CANARY] * len(y)}
    table = pa.table({**columns, "a": [str(SECRET)] * len(y)} if bad else columns)
    with pa.OSFile("own.arrow", "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return data.arrow("own.arrow", inputs=["a"], label="y")


@pytest.mark.parametrize("kind", ["dataset", "arrow"])
def test_no_canary_of_what_is_read_in_python_is_in_a_folder(kind: str, capfd: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(0)
    examples = Telling((7,)) if kind == "dataset" else _arrow(bad=False)
    model = nn.Linear(3 if kind == "dataset" else 1, 2)
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        trained = rt.fit(model, examples, epsilon=3.0, epochs=2, batch_size=20, size=100, folder="out/a")
    trained.report("out/page.html")
    assert leaks(Path("out")) == {}
    assert {"a/card.json", "a/model.safetensors", "page.html"} <= open_to_all(Path("out")).keys()
    said = "".join(capfd.readouterr()) + "".join(str(one.message) for one in raised)
    assert found_in(said.encode()) == []


@pytest.mark.parametrize("kind", ["dataset", "arrow"])
def test_what_cannot_be_read_in_python_is_not_repeated(kind: str) -> None:
    with pytest.raises(DataError) as error:
        rt.fit(nn.Linear(3, 2), _arrow(bad=True) if kind == "arrow" else Telling(tuple(range(80))), epsilon=3.0)
    assert found_in(str(error.value).encode()) == []


def test_a_canary_is_found_where_it_is() -> None:
    for content in (CANARY, json.dumps({"a": SECRET}), repr(np.float32(SECRET))):
        assert found_in(content.encode())
    assert found_in(b"..." + np.full(3, SECRET, np.float32).tobytes())
    assert found_in(b"nothing") == []
