"""The privacy statement says what holds, and nothing more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from reticent.report import read, summarise
from reticent.report.statement import Statement, make_statement


def said(folder: Path, name: str) -> Statement:
    results = read(folder)
    run = next(run for run in results.runs if run.run == name)
    return make_statement(run, results, summarise(results.runs))


def text(of: Statement) -> str:
    return json.dumps(of.to_json())


def test_it_has_all_fifteen_fields_and_none_is_empty(folder: Path) -> None:
    for run in read(folder).done:
        fields = said(folder, run.run).fields
        assert len(fields) == 15
        assert all(sentences and all(sentences) for sentences in fields.values())


def test_a_proved_guarantee_is_stated_with_its_limits(folder: Path) -> None:
    stated = said(folder, "dpsgd-eps3-seed0")
    assert stated.status == "proved"
    assert "(3.00, 1e-05)-DP, one example's contribution removed or added" in stated.fields["Guarantee"][0]
    assert "at most 20.1 %" in stated.headline
    assert "95.3 %" in stated.fields["Limits, in plain words"][1]
    assert any("26 other private runs" in sentence for sentence in stated.fields["What is covered, and what is not"])


def test_without_a_guarantee_nothing_is_promised(folder: Path) -> None:
    for name in ("plain-seed0", "pd_sgd-seed0"):
        stated = said(folder, name)
        assert stated.status == "none"
        assert "no differential privacy" in stated.headline
        assert "at most" not in text(stated).replace("at most reach", "")
        assert "Nobody, provably." in stated.fields["Who is protected"]


def test_seeded_runs_are_not_for_release(folder: Path) -> None:
    assert "Not for release" in said(folder, "dpsgd-eps1-seed0").fields["Implementation"][0]


def test_attacks_and_audits_are_told_of_the_run_they_are_about(folder: Path) -> None:
    attacked, other = said(folder, "dpsgd-eps3-seed0"), said(folder, "dpsgd-eps1-seed0")
    assert attacked.fields["Attacks"][0].startswith("loss threshold: AUC 0.584")
    assert "consistent" in attacked.fields["Audit"][0]
    assert other.fields["Attacks"] == ["This model was not attacked."]
    assert "was not audited" in other.fields["Audit"][0]
    assert "contradicted" in said(folder, "auto_s-eps1-seed0").fields["Audit"][0]


def test_a_claim_is_never_called_proved(folder: Path, records: Any) -> None:
    lines = [records.run("dpsur", 3.0, 0, 0.9, guarantee=records.guarantee(3.0, claimed=2.1))]
    (folder / "results.jsonl").write_text(json.dumps(lines[0]) + "\n")
    told = said(folder, "dpsur-eps3-seed0").fields["Guarantee"]
    assert "As claimed by the paper, not proved: epsilon 2.10." in told
    lines[0]["guarantee"]["as_claimed"]["refuted"] = True
    (folder / "results.jsonl").write_text(json.dumps(lines[0]) + "\n")
    assert "As claimed by the paper, refuted: epsilon 2.10." in said(folder, "dpsur-eps3-seed0").fields["Guarantee"]


def test_it_can_be_repeated_from_what_it_says(folder: Path) -> None:
    command = said(folder, "dpsgd-eps3-seed0").fields["To repeat it"][0]
    assert command == "reticent train --method dpsgd --data digits --model linear --epsilon 3 --batch-size 256 --seed 0"
