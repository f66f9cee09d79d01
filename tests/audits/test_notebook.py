"""Attacks and audits of a stored run, as a notebook calls them: typed, and the same figures as the commands'."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import reticent as rt
from reticent.audits.stored import check_stored
from reticent.cli import app
from reticent.errors import DataError, ReticentError, UnknownName
from reticent.experiments.recipe import Recipe
from reticent.experiments.training import train
from reticent.results import read_result
from reticent.results.sealing import read_sealed


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    train(Recipe(data="digits", epsilon=3.0, epochs=1, seed=0), folder)
    return folder


def said(*words: str) -> dict[str, Any]:
    """What a command answers in JSON."""
    result = CliRunner().invoke(app, [*words, "--json"], catch_exceptions=False)
    return dict(json.loads(result.stdout))


def through_json(data: dict[str, object]) -> Any:
    return json.loads(json.dumps(data, allow_nan=False))


def test_attack_run_finds_what_the_command_finds(run: Path, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    report = rt.attacks.attack_run(
        run,
        attacks=["loss", "lira"],
        models=4,
        records=50,
        canaries=20,
        out=tmp_path / "mine",
        tell=lambda done, total: told.append((done, total)),
    )
    assert isinstance(report, rt.attacks.AttackReport)
    assert [summary.attack for summary in report.attacks] == ["loss", "lira"]
    assert report.guarantee.epsilon <= 3.0
    assert (report.shadows, report.records, told[-1]) == (4, 50, (4, 4))
    assert report.canaries is not None
    words = ("--attacks", "loss,lira", "--models", "4", "--records", "50", "--canaries", "20")
    assert through_json(report.to_json()) == said("attack", str(run), *words, "--out", str(tmp_path / "theirs"))
    assert read_sealed(tmp_path / "mine" / "attack.json") == through_json(report.to_json())


def test_an_attack_that_nobody_knows_is_refused_before_anything_is_trained(run: Path) -> None:
    with pytest.raises(UnknownName, match="lyra"):
        rt.attacks.attack_run(run, attacks=["lyra"])
    assert not (run / "private" / "attack").exists()


SEEDED = ("stored ledger", "one run", "sensitivity", "step at rate 1", "step at rate 0.5")
"""The probes that a seed makes repeatable; the others look at secret randomness."""


def seeded(answer: dict[str, Any]) -> dict[str, Any]:
    findings = [finding for finding in answer["findings"] if finding["probe"] in SEEDED]
    return {name: value for name, value in answer.items() if name != "planted"} | {"findings": findings}


@pytest.mark.usefixtures("one_probe")
def test_audit_run_finds_what_the_command_finds(run: Path) -> None:
    told: list[rt.audits.Finding] = []
    report = rt.audits.audit_run(run, runs=20, canaries=100, seed=0, tell=told.append)
    assert isinstance(report, rt.audits.RunReport)
    assert report.verdict == "consistent"
    assert report.lower < report.upper <= 3.0 < report.step.upper
    assert sorted(told, key=str) == sorted(report.findings, key=str)
    kept = read_sealed(run / "private" / "audit.json")
    assert kept == through_json(report.to_json())
    assert seeded(kept) == seeded(said("audit", str(run), "--runs", "20", "--canaries", "100", "--seed", "0"))


def test_audit_method_finds_what_the_command_finds() -> None:
    report = rt.audits.audit_method("auto_s", noise_multiplier=2.0, runs=20, seed=0)
    assert type(report) is rt.audits.Report
    answer = said("audit", "--method", "auto_s", "--noise-multiplier", "2", "--runs", "20", "--seed", "0")
    assert seeded(through_json(report.to_json())) == seeded(answer)


def test_a_planted_bug_is_found_and_taken_away_again() -> None:
    assert rt.audits.audit_method(runs=20, bug="no-noise", seed=0).verdict == "contradicted"
    assert rt.audits.audit_method(runs=20, alpha=1e-4, seed=0).verdict == "consistent"
    with pytest.raises(UnknownName, match="no-noise"):
        rt.audits.audit_method(bug="no-nose")


# -- damaged folders ---------------------------------------------------------------------------------------------------

TEXTS = ["{\n", "[]\n", "{}\n", '{"recipe": {"data": "digits"}}\n']


def damaged(run: Path, copy: Path, name: str, text: str) -> Path:
    for path in run.iterdir():
        if path.is_file():
            (copy / path.name).write_bytes(path.read_bytes())
    (copy / name).write_text(text)
    return copy


@pytest.mark.parametrize("name", ["result.json", "card.json"])
@pytest.mark.parametrize("text", TEXTS)
def test_an_attack_refuses_a_damaged_file_in_a_sentence(run: Path, tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(DataError, match=name):
        rt.attacks.attack_run(damaged(run, tmp_path, name, text), attacks=["loss"], models=4, records=20)


@pytest.mark.parametrize("text", TEXTS)
def test_an_audit_refuses_a_damaged_result_in_a_sentence(run: Path, tmp_path: Path, text: str) -> None:
    with pytest.raises(ReticentError, match=r"result\.json"):
        rt.audits.audit_run(damaged(run, tmp_path, "result.json", text), runs=20, canaries=0)


@pytest.mark.parametrize("text", [TEXTS[0], TEXTS[3]])
def test_a_ledger_that_cannot_be_read_contradicts_what_the_run_claims(run: Path, tmp_path: Path, text: str) -> None:
    folder = damaged(run, tmp_path, "ledger.jsonl", text)
    ledger = check_stored(folder, read_result(folder).guarantee)
    assert not ledger.holds
    assert "ledger.jsonl" in str(ledger)
