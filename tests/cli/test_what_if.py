"""`reticent plan --what-if`: the runs that budgets get, from public numbers, and just those that `train` would make."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from reticent.cli import app
from reticent.errors import SettingError


def ask(*words: str) -> Any:
    return json.loads(CliRunner().invoke(app, ["plan", "--what-if", *words, "--json"], catch_exceptions=False).stdout)


def test_a_table_of_budgets_without_any_data() -> None:
    answer = ask("--data-size", "20000", "--parameters", "500", "--epsilons", "0.5,2,8")
    rows = answer["rows"]
    assert (answer["size"], answer["parameters"]) == (20_000, 500)
    assert [round(row["epsilon"], 1) for row in rows] == [0.5, 2.0, 8.0]
    assert all(row["epsilon"] <= asked for row, asked in zip(rows, (0.5, 2.0, 8.0), strict=True))
    assert [row["signal"] for row in rows] == sorted(row["signal"] for row in rows)
    assert all(row["step_signal"] == pytest.approx(row["signal"] / row["rounds"] ** 0.5) for row in rows)


def test_a_row_is_the_run_that_train_would_make() -> None:
    (row,) = ask("--data", "digits", "--epsilons", "3")["rows"]
    words = ["plan", "--data", "digits", "--epsilon", "3", "--json"]
    planned = json.loads(CliRunner().invoke(app, words, catch_exceptions=False).stdout)
    assert {name: row[name] for name in ("noise_multiplier", "rounds", "batch_size")} == {
        name: planned[name] for name in ("noise_multiplier", "rounds", "batch_size")
    }
    assert row["epsilon"] == planned["guarantee"]["epsilon"]


def test_what_is_said_stays() -> None:
    (row,) = ask("--data", "digits", "--epsilons", "3", "--batch-size", "300", "--epochs", "5")["rows"]
    assert (row["batch_size"], row["rounds"]) == (300, 24)


def test_words_and_a_page_with_a_chart(tmp_path: Path) -> None:
    page = tmp_path / "what-if.html"
    words = [
        "plan",
        "--what-if",
        "--data-size",
        "5000",
        "--parameters",
        "100",
        "--epsilons",
        "1,4",
        "--figure",
        str(page),
    ]
    told = CliRunner().invoke(app, words, catch_exceptions=False).output
    assert "signal/noise of a step" in told.splitlines()[0]
    html = page.read_text()
    assert html.count("<circle") == 2
    assert "<table>" in html
    assert "http" not in html.replace("http://www.w3.org/2000/svg", ""), "the page needs nothing from elsewhere"


def test_what_is_missing_is_named() -> None:
    with pytest.raises(SettingError, match="--parameters"):
        CliRunner().invoke(app, ["plan", "--what-if", "--data-size", "5000"], catch_exceptions=False)
