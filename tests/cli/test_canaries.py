"""What may be published: canaries in every kind of input, and no trace of them in any artefact that is not private."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from reticent.cli import app
from reticent.errors import ReticentError
from reticent.files import PRIVATE

CANARY = "Xanthippe-4711"
SCHEMA = """
label = "ill"
classes = ["no", "yes"]
[columns]
name = { skip = true }
age = { low = 0, high = 100 }
"""


def table(path: Path, *, rows: int = 60, age: str = "50", label: str = "yes", header: bool = True) -> None:
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        if header:
            out.writerow(["name", "age", "ill"])
        out.writerow([CANARY, age, label])
        out.writerows([[f"person {number}", str(number), ["no", "yes"][number % 2]] for number in range(rows)])


def bad_table(path: Path) -> None:
    """A cell and a label that the schema does not allow are the canary."""
    table(path, age=CANARY)


def bad_label(path: Path) -> None:
    table(path, label=CANARY)


def no_header(path: Path) -> None:
    """The first record takes the place of the names of columns."""
    table(path, header=False)


def other_coding(path: Path) -> None:
    table(path)
    path.write_bytes(path.read_bytes() + b"\xff" + CANARY.encode() + b"\n")


def ragged(path: Path) -> None:
    table(path)
    path.write_text(path.read_text() + f"{CANARY},1,no,{CANARY}\n")


INPUTS = {
    "good": table,
    "cell": bad_table,
    "label": bad_label,
    "header": no_header,
    "coding": other_coding,
    "row": ragged,
}


def run(*words: str) -> str:
    """All that a command prints; what it refuses is told on the terminal of whoever has the data."""
    said = CliRunner().invoke(app, words)
    if said.exception is not None and not isinstance(said.exception, SystemExit | ReticentError):
        raise said.exception
    return said.output


def released(folder: Path) -> dict[str, bytes]:
    """Every file of a folder that is not in a private one."""
    files = {path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()}
    return {str(name): path.read_bytes() for name, path in files.items() if PRIVATE not in name.parts}


@pytest.mark.parametrize("kind", INPUTS)
def test_no_canary_of_a_table_is_in_what_is_released(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    INPUTS[kind](Path("people.csv"))
    Path("schema.toml").write_text(SCHEMA)
    own = ("--data", "people.csv", "--set", "schema=schema.toml")
    out = Path("out")
    # Data that was right when it was looked at, and is not when the runs read it: what a worker says is kept.
    monkeypatch.setattr("reticent.experiments.compare._check_data", lambda _comparison: None)
    run("train", "--data", "people.csv", "--schema", "schema.toml", "--epsilon", "3", "--epochs", "2", "--out", "out/a")
    run("compare", *own, "--methods", "dpsgd", "--epsilons", "3", "--out", "out/b", "--jobs", "1", "--set", "epochs=2")
    run("report", "out/b")
    found = released(out)
    assert "b/report.html" in found
    assert {name for name, content in found.items() if CANARY.encode() in content} == set()
    records = [json.loads(line) for line in found["b/results.jsonl"].splitlines()]
    assert {record["status"] for record in records} == {"done" if kind == "good" else "failed"}
    for record in records:
        if record["status"] == "failed":
            whole = Path(record["error"].rpartition("see ")[2])
            assert whole.parent.name == PRIVATE
            assert whole.stat().st_mode & 0o077 == 0
            assert "Error" in whole.read_text()


def test_no_canary_of_arrays_is_in_what_is_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    secret = np.float32(0.7342518926)
    x, y = rng.random((80, 3), np.float32), rng.integers(0, 2, 80)
    x[7] = secret
    np.savez("own.npz", x=x, y=y, classes=np.array(["no", "yes"]), names=np.array([CANARY]))
    settings = ("--epsilon", "3", "--epochs", "2", "--private-diagnostics", "--out", "out/a")
    run("train", "--data", "own.npz", *settings)
    run("report", "out/a")
    run("audit", "out/a", "--runs", "20", "--canaries", "0", "--seed", "0")
    found = released(Path("out"))
    assert {"a/model.safetensors", "a/report.html", "a/card.json", "a/result.json", "a/rounds.jsonl"} <= found.keys()
    for trace in (CANARY.encode(), secret.tobytes(), str(secret).encode()):
        assert {name for name, content in found.items() if trace in content} == set()
    private = {path.name for path in Path("out/a/private").iterdir()}
    assert {"README.txt", "checkpoint.safetensors", "diagnostics.jsonl", "audit.json"} <= private
    assert {path.stat().st_mode & 0o077 for path in Path("out/a/private").iterdir() if path.name != "README.txt"} == {0}
