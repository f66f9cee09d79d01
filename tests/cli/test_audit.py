"""`reticent audit` and `reticent attack` from the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from reticent.cli.attack import attack
from reticent.cli.audit import audit
from reticent.errors import DataError, ResumeError, SettingError
from reticent.experiments.plain import train_plain
from reticent.experiments.recipe import Recipe
from reticent.experiments.training import train

app = typer.Typer()
app.command()(attack)
app.command()(audit)


def ask(*words: str) -> tuple[int, str, str]:
    said = CliRunner().invoke(app, words)
    if said.exception is not None and not isinstance(said.exception, SystemExit):
        raise said.exception
    return said.exit_code, said.stdout, said.stderr


def stored(path: Path) -> dict[str, Any]:
    """What a file holds; JSON knows no infinity."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{path} holds {constant}")

    found = dict(json.loads(path.read_text(), parse_constant=refuse))
    assert found.pop("sha256")
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    train(Recipe(data="digits", epsilon=3.0, epochs=1, seed=0), folder)
    return folder


def test_the_bugs_are_listed_one_a_line() -> None:
    code, out, _ = ask("audit", "--list-bugs")
    assert code == 0
    names = out.splitlines()
    assert len(names) >= 10
    assert {"no-clip", "no-noise", "reused-noise", "shuffled-batches", "half-noise"} <= set(names)
    assert json.loads(ask("audit", "--list-bugs", "--json")[1]).keys() == set(names)


def test_a_right_method_is_consistent() -> None:
    code, out, err = ask("audit", "--method", "dpsgd", "--runs", "40", "--alpha", "1e-4", "--seed", "1")
    assert code == 0
    assert out.startswith("consistent")
    assert "step at rate 1" in err


@pytest.mark.parametrize("bug", ["no-noise", "shuffled-batches"])
def test_a_planted_bug_is_contradicted_with_exit_code_1(bug: str) -> None:
    code, out, _ = ask("audit", "--plant", bug, "--runs", "20", "--json")
    answer = json.loads(out)
    assert code == 1
    assert answer["verdict"] == "contradicted"
    assert answer["said_by"]
    assert answer["planted"] == bug
    assert {"lower", "upper", "confidence"} <= answer.keys()


def test_a_stored_run_is_audited_with_canaries(run: Path) -> None:
    code, out, _ = ask("audit", str(run), "--runs", "20", "--canaries", "100", "--json", "--seed", "0")
    answer = json.loads(out)
    assert code == 0, answer["said_by"]
    assert answer["upper"] == pytest.approx(3.0, abs=0.01)
    assert answer["lower"] < answer["upper"]
    assert [finding["probe"] for finding in answer["findings"]][:2] == ["stored ledger", "one run"]
    assert answer["name"] == "one run, 100 canaries"
    assert stored(run / "private" / "audit.json") == {
        name: value for name, value in answer.items() if name != "planted"
    }


def test_what_a_planted_bug_did_is_not_kept_as_an_audit_of_the_run(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run", ignore=shutil.ignore_patterns("audit.json", "attack"))
    words = ("audit", str(tmp_path / "run"), "--runs", "20", "--canaries", "0", "--seed", "0")
    assert ask(*words, "--plant", "no-noise")[0] == 1
    assert not (tmp_path / "run" / "private" / "audit.json").exists()
    assert ask(*words)[0] == 0
    assert stored(tmp_path / "run" / "private" / "audit.json")["name"] == "one step"


@pytest.mark.usefixtures("one_probe")
def test_an_audit_of_a_run_that_proves_nothing_is_kept_as_strict_json(tmp_path: Path) -> None:
    train(Recipe(data="digits", method="pd_sgd", epochs=1, seed=0), tmp_path)
    ask("audit", str(tmp_path), "--runs", "20", "--canaries", "0", "--seed", "0")
    assert stored(tmp_path / "private" / "audit.json")["findings"][0]["figures"]["card"] is None


@pytest.mark.usefixtures("one_probe")
def test_a_ledger_that_costs_more_than_the_card_says_is_contradicted(run: Path, tmp_path: Path) -> None:
    for name in ("result.json", "ledger.jsonl"):
        (tmp_path / name).write_bytes((run / name).read_bytes())
    result = json.loads((tmp_path / "result.json").read_text())
    result["guarantee"]["epsilon"] = 1.0
    (tmp_path / "result.json").write_text(json.dumps(result))
    with pytest.raises(DataError, match=r"result\.json was changed"):
        ask("audit", str(tmp_path), "--runs", "20", "--canaries", "0", "--json", "--seed", "0")
    del result["sha256"]  # as files were before they had one
    (tmp_path / "result.json").write_text(json.dumps(result))
    code, out, _ = ask("audit", str(tmp_path), "--runs", "20", "--canaries", "0", "--json", "--seed", "0")
    assert code == 1
    assert json.loads(out)["said_by"] == ["stored ledger"]


def test_a_stored_run_is_attacked_and_its_shadows_are_kept(run: Path) -> None:
    words = ("attack", str(run), "--attacks", "loss,lira,rmia", "--models", "4", "--records", "50", "--json")
    code, out, err = ask(*words)
    answer = json.loads(out)
    assert code == 0
    assert [row["attack"] for row in answer["attacks"]] == ["loss", "lira", "rmia"]
    assert answer["above_what_is_permitted"] == []
    assert 0.3 < answer["blind"]["auc"] < 0.7
    assert "4 of 4" in err
    _, again, err = ask(*words)
    assert json.loads(again) == answer
    assert err.splitlines() == ["shadow models: 4 of 4"]


@pytest.mark.parametrize(
    "settings",
    [{}, {"method": "sa_dpsgd", "epsilon": 3.0, "holdout": 200}, {"method": "advreg"}],
    ids=["plain", "hold-out", "advreg"],
)
def test_runs_of_every_kind_are_attacked_by_shadows_of_their_own(settings: dict[str, Any], tmp_path: Path) -> None:
    recipe = Recipe(data="digits", epochs=1.0, seed=0, **settings)
    _ = train(recipe, tmp_path) if settings else train_plain(recipe, tmp_path)
    code, out, _ = ask("attack", str(tmp_path), "--attacks", "loss", "--models", "4", "--records", "50", "--json")
    assert code == 0
    answer = json.loads(out)
    assert stored(tmp_path / "private" / "attack" / "attack.json") == answer
    (entry,) = answer["attacks"]
    assert entry["members"] == sum(entry["histogram"]["members"]) == 50
    assert len(entry["fpr"]) == len(entry["tpr"]) > 10


def test_plain_training_has_nothing_to_audit(tmp_path: Path) -> None:
    train_plain(Recipe(data="digits", epochs=1.0, seed=0), tmp_path)
    with pytest.raises(SettingError, match="plain training keeps no ledger"):
        ask("audit", str(tmp_path))


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ResumeError, match="no finished run"):
        ask("attack", str(tmp_path))
