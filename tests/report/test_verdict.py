"""Which method is called the best, and how sure the page is of it."""

from __future__ import annotations

from typing import Any

import pytest

from reticent.report.summary import summarise
from reticent.report.verdict import verdicts


def compare(records: Any, dpsgd: list[float], auto_s: list[float]) -> str:
    runs = [records.run("dpsgd", 3.0, seed, accuracy) for seed, accuracy in enumerate(dpsgd)]
    runs += [records.run("auto_s", 3.0, seed, accuracy) for seed, accuracy in enumerate(auto_s)]
    (verdict,) = verdicts(summarise(records.results(runs)))
    return f"{verdict.best}: {verdict.sentence}"


@pytest.mark.parametrize(
    ("dpsgd", "auto_s", "said"),
    [
        ([0.8, 0.81, 0.82], [0.85, 0.861, 0.87], "AUTO-S: 5.0 points above DP-SGD, more than chance explains (95 %)."),
        ([0.8, 0.81, 0.82], [0.9, 0.81, 0.77], "AUTO-S: 1.7 points above DP-SGD, which may be chance."),
        ([0.8, 0.81], [0.85, 0.86], "AUTO-S: 5.0 points above DP-SGD, in both seeds."),
        ([0.8, 0.81], [0.85, 0.8], "AUTO-S: 2.0 points above DP-SGD, which one of the two seeds contradicts."),
        ([0.8], [0.85], "AUTO-S: 5.0 points above DP-SGD, from one seed: no more than a hint."),
        ([0.9], [0.85], "DP-SGD: No other method here does better at this budget."),
    ],
)
def test_how_sure_it_is(records: Any, dpsgd: list[float], auto_s: list[float], said: str) -> None:
    assert compare(records, dpsgd, auto_s) == said


def test_what_proves_nothing_cannot_win(records: Any) -> None:
    assert {verdict.best for verdict in verdicts(summarise(records.results(records.everything())))} == {"AUTO-S"}
