"""Measures: the numbers that papers print of a run, each read from its result in the unit that it is printed in.

Accuracy, rejections and true positive rates are in percent; AUC and balanced accuracy of attacks between 0 and 1.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from reticent.errors import UnknownName
from reticent.results import Result

Accounting = Literal["proved", "claimed"]
"""Whose epsilon is read: the one that we prove, or the paper's own for the same run."""

AT_ACCURACY = re.compile(r"epsilon_at_accuracy_(\d+(?:\.\d+)?)")
OF_ATTACK = re.compile(r"[\w-]+\.(auc|balanced|oracle|advantage|tpr_at_0\.\d+)")
OF_USES = ("uses_mean", "uses_sd", "uses_least", "uses_most", "rejected_poisoned", "rejected_others")
"""Read from private diagnostics: how often each example took part in a kept update, and what became of its batches."""
BEST = "best"
"""The attack that did best, measure by measure."""


def check_measure(name: str) -> None:
    """Refuse a measure that nobody can read.

    >>> check_measure("accuracy"), check_measure("lira.tpr_at_0.001")
    (None, None)
    """
    if name not in (*OF_RUN, *OF_USES) and not AT_ACCURACY.fullmatch(name) and not OF_ATTACK.fullmatch(name):
        raise UnknownName("measure", name, [*OF_RUN, "epsilon_at_accuracy_95", "lira.auc", "lira.tpr_at_0.001"])


def measure(name: str, result: Result, accounting: Accounting = "proved") -> float | None:
    """What a finished run gives for a measure; None if it does not.

    >>> measure("accuracy", Result(run="a", label="a", recipe={}, accuracy=0.5))
    50.0
    """
    check_measure(name)
    if name in OF_RUN:
        return OF_RUN[name](result, accounting)
    if (found := AT_ACCURACY.fullmatch(name)) is not None:
        return _epsilon_at(result, float(found[1]) / 100, accounting)
    return (result.attacks or {}).get(name)


def why_missing(name: str) -> str:
    """Why a run may not give a measure.

    >>> why_missing("lira.auc")
    'the runs were not attacked so: give `attack` in the entry'
    """
    if name in OF_USES:
        return "the runs kept no private diagnostics: give `private_diagnostics = true` in the entry"
    if name.partition(".tpr_at_")[1]:
        return "the runs were not attacked so, or on too few records for so low a rate"
    if AT_ACCURACY.fullmatch(name):
        return "not every run reached it, or there is no curve: set `curve` in the entry"
    if "." in name:
        return "the runs were not attacked so: give `attack` in the entry"
    return "not every run has it"


def of_report(report: Mapping[str, Any]) -> dict[str, float]:
    """The measures in the report of an attack, as `reticent attack --json` writes it."""
    found: dict[str, float] = {}
    for summary in report["attacks"]:
        mine = _of_attack(summary)
        found |= {f"{summary['attack']}.{name}": value for name, value in mine.items()}
        for name, value in mine.items():
            found[f"{BEST}.{name}"] = max(value, found.get(f"{BEST}.{name}", value))
    for name in ("pooled", "canaries", "blind"):
        if report[name] is not None:
            found |= {f"{name}.{measured}": value for measured, value in _of_attack(report[name]).items()}
    return found


def _of_attack(summary: Mapping[str, Any]) -> dict[str, float]:
    rates = {f"tpr_at_{rate['fpr']:g}": 100 * rate["tpr"] for rate in summary["at_low_rates"]}
    heldout, oracle = summary["heldout"], summary["oracle"]
    balanced = {"balanced": heldout["balanced"], "oracle": oracle["balanced"], "advantage": heldout["advantage"]}
    return {"auc": summary["auc"], **balanced, **rates}


def of_uses(lines: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """How often examples were part of an update, and what was rejected with and without the first, by diagnostics.

    Where a batch is poisoned the first example is in it.

    >>> last = {"kept": True, "uses": {"drawn": [[0, 1], [1, 1]], "kept": [[1, 1]]}}
    >>> of_uses([{"kept": False}, last])["rejected_poisoned"]
    100.0
    """
    if not lines or "uses" not in lines[-1]:
        return {}
    drawn, used = (dict(lines[-1]["uses"][name]) for name in ("drawn", "kept"))
    counts = [used.get(example, 0) for example in drawn]
    first, rounds, kept = drawn.get(0, 0), len(lines), sum(bool(line["kept"]) for line in lines)
    values = (
        statistics.fmean(counts),
        statistics.pstdev(counts),
        min(counts),
        max(counts),
        100 * (1 - used.get(0, 0) / first) if first else math.nan,
        100 * (1 - (kept - used.get(0, 0)) / (rounds - first)) if rounds > first else math.nan,
    )
    return {name: value for name, value in zip(OF_USES, values, strict=True) if not math.isnan(value)}


# -- of a run ------------------------------------------------------------------------------------------------------


def _accuracy(result: Result, _: Accounting) -> float | None:
    return None if result.accuracy is None else 100 * result.accuracy


def _rejected(result: Result, _: Accounting) -> float | None:
    """Of hidden attempts nobody knows how many there were."""
    options = result.settings.part("options")
    hidden = options is not None and bool(options.get("hidden_attempts", bool))
    return None if hidden or not result.rounds else 100 * (1 - result.kept / result.rounds)


def _epsilon(result: Result, accounting: Accounting) -> float | None:
    """A paper without a rule of its own claims what is proved."""
    claimed = result.claimed_epsilon if accounting == "claimed" else None
    return result.epsilon if claimed is None else claimed


def _epsilon_at(result: Result, accuracy: float, accounting: Accounting) -> float | None:
    """What was spent when the curve first reached an accuracy."""
    curve = result.learning
    if curve is None or curve.of != "accuracy":
        return None
    spent = dict((curve.claimed if accounting == "claimed" else ()) or curve.epsilon)
    reached = (number for number, value in curve.points if value >= accuracy)
    return spent.get(next(reached, -1))


def _seconds(result: Result, _: Accounting) -> float | None:
    return result.seconds


def _seconds_per_round(result: Result, _: Accounting) -> float | None:
    return result.seconds / result.rounds if result.seconds is not None and result.rounds else None


OF_RUN: dict[str, Callable[[Result, Accounting], float | None]] = {
    "accuracy": _accuracy,
    "rejected": _rejected,
    "epsilon": _epsilon,
    "seconds": _seconds,
    "seconds_per_round": _seconds_per_round,
}
