"""`reticent ledger` and `reticent train --dataset`: what they print, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from reticent.cli import app
from reticent.errors import ReticentError


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RETICENT_LEDGER", str(tmp_path / "ledger.sqlite"))


def said(*words: str) -> str:
    result = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def told(*words: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(said("ledger", *words, "--json"))
    return found


def test_from_the_first_charge_to_the_last() -> None:
    assert "no dataset yet" in said("ledger", "list")
    assert "0.00% of epsilon 8 taken by 0 charges" in said("ledger", "create", "a", "--epsilon", "8", "--delta", "1e-5")
    words = ("--epsilon", "1", "--delta", "1e-5", "--epochs", "1", "--size", "1500", "--dataset", "a", "--out", "run")
    said("train", "--data", "digits", *words)
    assert told("show", "a")["charges"] == 1
    assert 0.01 < float(str(told("charge", "a", "--rho", "0.01", "--note", "a mean")["share"])) < 0.05
    for kind in (
        ("--epsilon", "0.1"),
        ("--noise-multiplier", "5"),
        ("--noise-multiplier", "5", "--sample-rate", "0.1"),
    ):
        said("ledger", "charge", "a", *kind, "--note", "published")
    lines = said("ledger", "history", "a").splitlines()
    assert len(lines) == 5
    assert "spent" in lines[0]
    assert "dpsgd" in lines[0]
    settled = told("settle", "run")
    assert settled["charge"]["state"] == "settled"  # type: ignore[index]
    assert [one["state"] for one in told("history", "a")] == ["settled"] + 4 * ["spent"]  # type: ignore[index]
    assert "a: " in said("ledger", "list")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["ledger", "show", "a"], "holds no dataset"),
        (["ledger", "settle", "."], "holds no run that is charged"),
        (["train", "--data", "digits", "--epsilon", "1", "--ledger", "there.sqlite"], "say which one with --dataset"),
        (["train", "--data", "digits", "--epsilon", "1", "--dataset", "a"], "holds no dataset"),
        (["ledger", "charge", "a", "--note", ""], "say one of"),
        (["ledger", "charge", "a", "--note", "", "--rho", "1", "--epsilon", "1"], "say one of"),
    ],
)
def test_what_is_refused(words: list[str], why: str) -> None:
    with pytest.raises(ReticentError, match=why):
        CliRunner().invoke(app, words, catch_exceptions=False)


@pytest.mark.parametrize(
    "words", [["compare", "--data", "digits", "--out", "x"], ["reproduce", "dpsur", "--table", "2"]]
)
def test_a_comparison_is_charged_to_nobody_and_says_so(words: list[str]) -> None:
    with pytest.raises(ReticentError, match="reticent train --dataset patients"):
        CliRunner().invoke(app, [*words, "--dataset", "patients"], catch_exceptions=False)
