"""Measures: every kind of number that the papers print, read from results and attack reports."""

from __future__ import annotations

import pytest

from reticent.accounting import Guarantee
from reticent.errors import UnknownName
from reticent.experiments.measures import check_measure, measure, of_report, why_missing
from reticent.results import Learning, Result

CURVE = Learning(
    of="accuracy",
    points=((10, 0.5), (20, 0.8), (30, 0.79), (40, 0.9)),
    epsilon=((10, 1.0), (20, 1.5), (30, 2.0), (40, 2.5)),
    claimed=((10, 0.5), (20, 0.7), (30, 0.9), (40, 1.1)),
)
CLAIM = {"epsilon": 1.1, "refuted": True, "text": "as claimed"}
RUN = Result(
    run="a",
    label="a",
    recipe={"data": "digits", "method": "dpsur", "options": {}},
    accuracy=0.9,
    guarantee=Guarantee("proved", 2.5, 1e-5, as_claimed=CLAIM),
    rounds=40,
    kept=10,
    seconds=20.0,
    learning=CURVE,
    attacks={"lira.auc": 0.6},
)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("accuracy", 90.0),
        ("rejected", 75.0),
        ("epsilon", 2.5),
        ("epsilon_at_accuracy_80", 1.5),
        ("epsilon_at_accuracy_50", 1.0),
        ("epsilon_at_accuracy_90.5", None),
        ("seconds", 20.0),
        ("seconds_per_round", 0.5),
        ("lira.auc", 0.6),
        ("population.auc", None),
    ],
)
def test_each_measure_is_read_in_the_unit_it_is_printed_in(name: str, value: float | None) -> None:
    for run in (RUN, Result.from_json(RUN.to_json())):
        assert measure(name, run) == (value if value is None else pytest.approx(value))


def test_the_papers_own_epsilon_is_read_for_runs_as_claimed() -> None:
    assert measure("epsilon", RUN, "claimed") == 1.1
    assert measure("epsilon_at_accuracy_80", RUN, "claimed") == 0.7


def test_nobody_knows_how_many_hidden_attempts_there_were() -> None:
    recipe = {**RUN.recipe, "options": {"hidden_attempts": True}}
    assert measure("rejected", Result(run="a", label="a", recipe=recipe, rounds=10, kept=10)) is None


@pytest.mark.parametrize("name", ["acuracy", "lira", "lira.acc", "epsilon_at_accuracy_", "lira.tpr_at_1"])
def test_a_measure_that_nobody_can_read_is_named(name: str) -> None:
    with pytest.raises(UnknownName, match=name):
        check_measure(name)


@pytest.mark.parametrize("name", ["accuracy", "lira.auc", "lira.tpr_at_0.001", "epsilon_at_accuracy_95"])
def test_what_is_missing_has_a_reason(name: str) -> None:
    assert why_missing(name)


def summary(name: str, auc: float, tpr: float) -> dict[str, object]:
    balanced = {"balanced": 0.5 + auc / 10, "advantage": auc / 5}
    rates = [{"fpr": 0.001, "tpr": tpr}]
    return {"attack": name, "auc": auc, "heldout": balanced, "oracle": balanced, "at_low_rates": rates}


def test_a_report_gives_every_attack_and_the_best_of_them() -> None:
    attacks = [summary("lira", 0.6, 0.01), summary("rmia", 0.55, 0.02)]
    report = {"attacks": attacks, "pooled": summary("all", 0.58, 0.0), "canaries": None, "blind": summary("b", 0.5, 0)}
    found = of_report(report)
    assert found["lira.auc"] == found["best.auc"] == 0.6
    assert found["rmia.tpr_at_0.001"] == found["best.tpr_at_0.001"] == 2.0, "in percent"
    assert found["lira.balanced"] == pytest.approx(0.56)
    assert found["pooled.auc"] == 0.58
    assert "canaries.auc" not in found
    for name in found:
        check_measure(name)
