"""Facts: what the page's charts draw, as plain data; everything in it is public unless it says otherwise."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import asdict
from statistics import fmean

from reticent.report.entries import AttackEntry, AuditEntry, Rates, Told
from reticent.report.limits import permitted_curve
from reticent.report.names import printed
from reticent.report.results import Results
from reticent.report.summary import BASELINE, Row
from reticent.results import ClassAccuracy, Result

ROC_POINTS = 240

Plain = dict[str, object]
"""What a script of the page reads."""


def facts(results: Results, rows: list[Row]) -> Plain:
    """All that is drawn."""
    return {
        "series": [{"label": label, "name": printed(label)} for label in _series(rows)],
        "points": [_point(row) for row in rows if row.accuracy],
        "spending": _spending(results.done),
        "classes": _classes(results.done),
        "attacks": [_attack(entry, results) for entry in results.attacks if entry.roc],
        "histograms": [_histogram(entry, results) for entry in results.attacks if entry.histogram],
        "audits": [_audit(entry, results) for entry in results.audits],
        "private": results.private,
        "commonest": next((run.commonest for run in results.done if run.commonest), None),
        "names": {str(number): name for number, name in enumerate(_named(results.done))},
    }


def alone(run: Result, without_privacy: float | None) -> Plain:
    """What only the page of a single run draws."""
    learning = run.learning
    return {
        "accuracy": run.accuracy,
        "commonest": run.commonest,
        "plain": without_privacy,
        "learning": None if learning is None else learning.to_json(),
        "confusion": run.confusion,
    }


def _named(runs: list[Result]) -> tuple[str, ...]:
    """What the classes are called, as the first run that knows says."""
    return next((run.class_names for run in runs if run.class_names is not None), ())


def _series(rows: list[Row]) -> list[str]:
    """The labels that are drawn, the baseline first: it always looks the same."""
    labels = dict.fromkeys(row.label for row in rows if row.kind != "plain")
    return sorted(labels, key=lambda label: label != BASELINE)


def _point(row: Row) -> Plain:
    assert row.accuracy is not None
    return {
        "label": row.label,
        "name": printed(row.label),
        "plain": row.kind == "plain",
        "target": row.target_epsilon,
        "epsilon": row.epsilon,
        "claimed": row.claimed_epsilon,
        "mean": row.accuracy.mean,
        "low": row.accuracy.low,
        "high": row.accuracy.high,
        "seeds": row.seeds,
    }


def _spending(runs: list[Result]) -> list[Plain]:
    """Epsilon over rounds, once for each label and budget: it is the same for every seed."""
    found: dict[tuple[str, float | None], Plain] = {}
    for run in runs:
        if run.epsilon_by_round:
            place: Plain = {"label": run.label, "name": printed(run.label), "target": run.target_epsilon}
            found.setdefault((run.label, run.target_epsilon), place | {"points": run.epsilon_by_round})
    return list(found.values())


def _classes(runs: list[Result]) -> list[Plain]:
    """Accuracy of each class, averaged over seeds."""
    groups: dict[tuple[str, float | None, int], list[ClassAccuracy]] = {}
    for run in runs:
        for entry in run.classes or ():
            groups.setdefault((run.label, run.target_epsilon, entry.number), []).append(entry)
    return [
        {
            "label": label,
            "name": printed(label),
            "target": target,
            "class": number,
            "accuracy": fmean(entry.accuracy for entry in group),
            "examples": group[0].examples,
        }
        for (label, target, number), group in groups.items()
    ]


def _attack(entry: AttackEntry, results: Results) -> Plain:
    """One ROC, thinned, with the curve that the guarantee of the attacked run permits."""
    run = results.run_of(entry)
    permitted = entry.permitted
    if permitted is None and run is not None and run.epsilon is not None:
        permitted = permitted_curve(run.epsilon, run.guarantee.delta)
    return {
        "run": entry.run,
        "of": title(entry, results),
        "attack": entry.attack,
        "outsiders": entry.outsiders,
        "roc": None if entry.roc is None else _thinned(entry.roc),
        "permitted": None if permitted is None else list(zip(permitted.fpr, permitted.tpr, strict=True)),
    }


def _histogram(entry: AttackEntry, results: Results) -> Plain:
    """The scores of one attack, bar by bar; scores of different attacks have no unit in common."""
    bars = {} if entry.histogram is None else asdict(entry.histogram)
    return {"of": title(entry, results), "attack": entry.attack, **bars}


def _thinned(roc: Rates) -> list[tuple[float, float]]:
    """At most `ROC_POINTS` points, evenly over the decades: small false positive rates are what matters."""
    points = list(zip(roc.fpr, roc.tpr, strict=True))
    if len(points) <= ROC_POINTS:
        return points
    rates = [10 ** (-5 * (1 - place / (ROC_POINTS - 1))) for place in range(ROC_POINTS)]
    places = sorted({0, len(points) - 1, *(max(0, bisect_right(roc.fpr, rate) - 1) for rate in rates)})
    return [points[place] for place in places]


def _audit(entry: AuditEntry, results: Results) -> Plain:
    return {
        "of": title(entry, results),
        "name": entry.name,
        "verdict": entry.verdict,
        "lower": entry.lower,
        "upper": entry.upper,
        "confidence": entry.confidence,
    }


def title(entry: Told, results: Results) -> str:
    """What was attacked or audited, in print."""
    run = results.run_of(entry)
    if run is None:
        return printed(entry.method or "a model that is not here")
    budget = f", epsilon {run.target_epsilon:g}" if run.target_epsilon else ""
    seed = f", seed {run.seed}" if run.seed is not None else ""
    return f"{printed(run.label)}{budget}{seed}"
