"""No sentence of the findings says what the records do not."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "results" / "findings.py"


@pytest.fixture(scope="module")
def findings() -> ModuleType:
    spec = importlib.util.spec_from_file_location("findings", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_findings_are_what_the_records_say(findings: ModuleType) -> None:
    assert findings.disagreements() == []


def test_another_number_in_a_page_is_noticed(findings: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    best = findings.answer(["best", "mnist", "3", "accuracy", ".1f"])
    page = findings._of_page("results/README.md")
    assert best in page
    monkeypatch.setattr(findings, "_of_page", lambda name: page.replace(best, "99.7") if "results" in name else "")
    assert any("does not say what the records do" in said for said in findings.disagreements())


def test_another_number_in_a_record_is_noticed(findings: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    better = [record | {"accuracy": record["accuracy"] - 0.01} for record in findings._records("imdb")]
    read = findings._records
    monkeypatch.setattr(findings, "_records", lambda file: better if file == "imdb" else read(file))
    assert any("DPSUR prints" in said for said in findings.disagreements())


def test_a_number_that_no_record_answers_for_is_noticed(findings: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    of_page = findings._of_page
    monkeypatch.setattr(findings, "_of_page", lambda name: of_page(name) + " It gains 7.7 points.")
    assert "no record is asked for 7.7 in the findings" in findings.disagreements()
