"""The command line, as a user or a script meets it."""

from __future__ import annotations

import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests import quick
from typer.testing import CliRunner, Result

from reticent.accounting.ledger import read_entries
from reticent.cli import app, main
from reticent.errors import ReticentError

QUICK = ["train", "--data", "digits", "--epsilon", "3", "--epochs", "2", "--seed", "0", "--json"]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def answer(*arguments: str) -> dict[str, Any]:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


def test_train_answers_in_json_what_scripts_rely_on(tmp_path: Path) -> None:
    said = answer(*QUICK, "--out", str(tmp_path / "a"))
    assert said["guarantee"]["status"] == "proved"
    assert said["guarantee"]["epsilon"] <= 3.0
    assert said["guarantee"]["adjacency"] == "zero-out"
    assert said["rounds"] == said["kept"] > 0
    assert said["accuracy"] > 0.5
    assert "80/20" in said["accuracy_on"]
    assert {"ledger.jsonl", "model.safetensors", "card.json", "result.json", "private"} <= {
        file.name for file in (tmp_path / "a").iterdir()
    }


def test_a_declared_size_and_a_replaced_example(tmp_path: Path) -> None:
    declared = answer(*QUICK, "--size", "1500", "--out", str(tmp_path / "a"))
    assert declared["guarantee"]["adjacency"] == "add-or-remove"
    assert declared["recipe"]["size"] == 1500
    assert answer(*QUICK, "--set", "size=1500")["guarantee"] == declared["guarantee"]
    assert answer(*QUICK, "--adjacency", "replace")["guarantee"]["adjacency"] == "replace"
    assert "add or remove one example" in run(*QUICK[:-1], "--size", "1500").stdout


def test_resume_of_a_finished_run_tells_its_result_and_a_second_run_is_refused(tmp_path: Path) -> None:
    out = ["--out", str(tmp_path / "a")]
    first = answer(*QUICK, *out)
    assert answer(*QUICK, *out, "--resume") == first
    with pytest.raises(ReticentError, match="finished run"):
        CliRunner().invoke(app, [*QUICK, *out], catch_exceptions=False)
    with pytest.raises(ReticentError, match="another recipe"):
        CliRunner().invoke(app, [*QUICK, *out, "--resume", "--lr", "7"], catch_exceptions=False)


def test_resume_in_an_empty_folder_starts(tmp_path: Path) -> None:
    assert answer(*QUICK, "--out", str(tmp_path / "new"), "--resume")["rounds"] > 0


def test_config_file_and_set_and_flags_in_that_order(tmp_path: Path) -> None:
    config = tmp_path / "run.toml"
    config.write_text('data = "digits"\nmethod = "dpadam"\nepsilon = 2\nlr = 0.5\nepochs = 1\nseed = 1\n')
    said = answer(
        "train", "--config", str(config), "--set", "lr=0.03", "--set", "stability=1", "--method", "auto_s", "--json"
    )
    assert said["recipe"]["lr"] == 0.03
    assert said["recipe"]["method"] == "auto_s"
    assert said["recipe"]["options"] == {"stability": 1}
    assert said["guarantee"]["epsilon"] <= 2


def test_in_words(tmp_path: Path) -> None:
    result = run(*[word for word in QUICK if word != "--json"], "--out", str(tmp_path / "a"))
    assert "proved" in result.stdout
    assert "accuracy" in result.stdout
    assert "if exactly this many rounds had been planned" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["train", "--data", "digts", "--epsilon", "1"], "did you mean 'digits'"),
        (["train", "--method", "dpsgdd", "--epsilon", "1"], "did you mean 'dpsgd'"),
        (["train", "--epsilon", "-1"], "above 0"),
        (["train", "--epsilon", "1", "--batch-size", "1e9", "--set", "epochs=many"], "epochs must be"),
        (["train", "--set", "lr"], "key=value"),
        (["train", "--config", "nowhere.toml"], "cannot read"),
        (["train", "--epsilon", "1", "--set", "max_grad_nrom=1"], "max_grad_norm"),
        (["train"], "noise_multiplier"),
    ],
)
def test_mistakes_are_told_in_one_line(
    arguments: list[str], says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["reticent", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert says in capsys.readouterr().err


def test_every_command_explains_itself() -> None:
    for command in app.registered_commands:
        assert command.callback is not None
        assert run(command.callback.__name__, "--help").exit_code == 0


@pytest.mark.slow
def test_demo_resumes_compares_attacks_and_writes_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reticent.methods.names", lambda: ["dpsgd", "auto_s"])  # all of them: `make demo`
    said = json.loads(run("demo", "--out", str(tmp_path), "--json").stdout)
    assert said["resumed"]["guarantee"]["status"] == "proved"
    assert said["failed"] == {}
    assert {row["label"] for row in said["summary"]} == {"plain", "dpsgd", "auto_s"}
    assert all(row["accuracy"]["mean"] > 0.8 for row in said["summary"])
    assert Path(said["page"]).exists()


def test_private_diagnostics_need_a_word_and_are_marked(tmp_path: Path) -> None:
    said = answer(*QUICK, "--out", str(tmp_path / "a"))
    assert not (tmp_path / "a" / "private" / "diagnostics.jsonl").exists()
    said = answer(*QUICK, "--private-diagnostics", "--out", str(tmp_path / "b"))
    path = tmp_path / "b" / "private" / "diagnostics.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(lines) == said["rounds"]
    assert all(line["private"] and line["drawn"] > 0 for line in lines)
    assert path.stat().st_mode & 0o077 == 0
    assert any("private diagnostics" in part for part in said["guarantee"]["excludes"])


def test_ctrl_c_says_how_to_go_on(tmp_path: Path) -> None:
    words = ["train", "--data", "digits", "--noise-multiplier", "1", "--epochs", "2000", "--out", tmp_path / "run"]
    ledger = tmp_path / "run" / "ledger.jsonl"
    with open(os.devnull) as nothing, (tmp_path / "told").open("w+") as told:
        process = quick.begin(quick.COMMAND, *words, files=(nothing, told, told))
        while not (ledger.exists() and ledger.stat().st_size) and process.is_alive():
            time.sleep(0.05)
        assert process.pid
        os.kill(process.pid, signal.SIGINT)
        process.join()
    assert process.exitcode == 130
    assert "goes on from here" in (tmp_path / "told").read_text()


def test_two_at_once_in_one_folder_take_turns(tmp_path: Path) -> None:
    """Both would write each line of the ledger."""
    words = [
        "train",
        "--data",
        "digits",
        "--resume",
        "--noise-multiplier",
        "1",
        "--epochs",
        "3",
        "--seed",
        "0",
        "--json",
    ]
    with ThreadPoolExecutor() as two:
        both = list(two.map(lambda _: quick.run(quick.COMMAND, *words, "--out", tmp_path / "run"), range(2)))
    answers = [json.loads(done.stdout) for done in both]
    assert answers[0] == answers[1]
    assert len(read_entries(tmp_path / "run" / "ledger.jsonl")) == answers[0]["rounds"]
