"""`reticent compare` and `reticent report`, as a user or a script meets them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from reticent.cli import app
from reticent.errors import DataError, ReticentError
from reticent.experiments.compare import Compared

CONFIG = """
data = "digits"
epochs = 1
epsilons = [3]
seeds = 2
methods = ["auto_s"]

[variant.hopeless]
method = "dpsgd"
lr = 1e30
max_grad_norm = -1.0
"""


def test_the_command_goes_on_with_what_is_there_and_reports_failures(
    compared: tuple[Path, Compared, Any], tmp_path: Path
) -> None:
    out, before, _ = compared
    config = tmp_path / "compare.toml"
    config.write_text(CONFIG)
    result = CliRunner().invoke(app, ["compare", "--out", str(out), "--config", str(config), "--json"])
    assert result.exit_code == 1, "two runs failed"
    answer = json.loads(result.stdout)
    assert answer["failed"].keys() == before.failed.keys()
    assert answer["summary"] == before.to_json()["summary"], "nothing that was done was run again"
    assert "[8 of 8]" in result.stderr
    assert "FAILED" in result.stderr


def test_in_words(compared: tuple[Path, Compared, Any]) -> None:
    out, _, _ = compared
    flags = ["--data", "digits", "--epochs", "1", "--methods", "auto_s", "--epsilons", "3", "--seeds", "2"]
    result = CliRunner().invoke(app, ["compare", "--out", str(out), *flags])
    assert result.exit_code == 0, "what failed before was not asked for again"
    assert "AUTO-S" in result.stdout
    assert "report.html" in result.stdout


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--methods", "dpsgdd"], "did you mean 'dpsgd'"),
        (["--epsilons", "one"], "--epsilons takes numbers"),
        (["--methods", "auto_s", "--set", "dpsur.lr=1"], "not among the methods"),
        (["--methods", "auto_s", "--gradient-cost", "auto_s=much"], "--gradient-cost takes numbers"),
    ],
)
def test_mistakes_are_told_before_any_run(flags: list[str], says: str, tmp_path: Path) -> None:
    with pytest.raises(ReticentError, match=says):
        CliRunner().invoke(app, ["compare", "--out", str(tmp_path / "out"), *flags], catch_exceptions=False)
    assert not (tmp_path / "out").exists()


def test_report_writes_the_page_again(compared: tuple[Path, Compared, Any]) -> None:
    out, _, _ = compared
    (out / "report.html").unlink()
    result = CliRunner().invoke(app, ["report", str(out), "--json"])
    answer = json.loads(result.stdout)
    assert (answer["runs"], answer["failed"], answer["private"]) == (8, 2, False)
    assert (out / "report.html").stat().st_size == answer["bytes"]


def test_report_of_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no results"):
        CliRunner().invoke(app, ["report", str(tmp_path)], catch_exceptions=False)
