"""Picking the best row: the warning says the sum of all private runs, on the page and for the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reticent.report import picking, read, write_page
from reticent.report.page import render
from reticent.results import Result


def test_the_cost_of_picking_is_the_sum_over_all_private_runs(records: Any) -> None:
    runs = [
        Result.from_json(records.run(label, epsilon, seed, 0.8))
        for label, epsilon in (("dpsgd", 1.0), ("auto_s", 3.0), ("plain", None), ("pd_sgd", None))
        for seed in (0, 1)
    ]
    cost = picking(runs)
    assert cost is not None
    assert cost.epsilon == pytest.approx(8.0, abs=1e-3)
    assert cost.delta == pytest.approx(4e-5)
    assert (cost.runs, cost.unproved) == (4, 2)
    assert "spends epsilon 8.00, the sum over all 4 private runs (2 more prove nothing)" in cost.sentence


def test_a_failed_run_costs_nothing_and_one_run_is_no_choice(records: Any) -> None:
    one = Result.from_json(records.run("dpsgd", 3.0, 0, 0.8))
    failed = Result.from_json(records.failed("auto_s", 3.0, 0, "no luck"))
    assert picking([one, failed]) is None


def test_every_card_of_a_best_method_says_what_picking_it_costs(folder: Path) -> None:
    page = render(read(folder))
    cost = picking(read(folder).runs)
    assert cost is not None
    assert page.count("<h2>Best at epsilon") == page.count(f"Picking it here costs {cost.cost}: budgets add up.") == 2


def test_names_and_the_commonest_class_are_on_the_page(tmp_path: Path, records: Any) -> None:
    names = {"dataset": "Visits", "class_names": [f"kind {number}" for number in range(10)]}
    lines = [records.run(label, 3.0, 0, 0.8) | names for label in ("dpsgd", "auto_s")]
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    page = write_page(tmp_path).read_text()
    assert "Private training on Visits" in page
    assert '"3":"kind 3"' in page
    assert "Always naming it, without looking" in page
    assert f"{100 * 39 / sum(range(30, 40)):.1f} %" in page
