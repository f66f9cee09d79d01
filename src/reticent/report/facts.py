"""Facts: what the page's charts draw, as plain data; everything in it is public unless it says otherwise."""

from __future__ import annotations

from bisect import bisect_right
from statistics import fmean
from typing import Any

from reticent.report.limits import permitted_curve
from reticent.report.names import printed
from reticent.report.results import Record, Results
from reticent.report.summary import BASELINE, Row

ROC_POINTS = 240


def facts(results: Results, rows: list[Row]) -> dict[str, Any]:
    """All that is drawn."""
    return {
        "series": [{"label": label, "name": printed(label)} for label in _series(rows)],
        "points": [_point(row) for row in rows if row.accuracy],
        "spending": _spending(results.done),
        "classes": _classes(results.done),
        "attacks": [_attack(entry, results) for entry in results.attacks if entry.get("fpr")],
        "histograms": [_histogram(entry, results) for entry in results.attacks if entry.get("histogram")],
        "audits": [_audit(entry, results) for entry in results.audits],
        "private": results.private,
    }


def _series(rows: list[Row]) -> list[str]:
    """The labels that are drawn, the baseline first: it always looks the same."""
    labels = dict.fromkeys(row.label for row in rows if row.kind != "plain")
    return sorted(labels, key=lambda label: label != BASELINE)


def _point(row: Row) -> dict[str, Any]:
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


def _spending(runs: list[Record]) -> list[dict[str, Any]]:
    """Epsilon over rounds, once for each label and budget: it is the same for every seed."""
    found: dict[tuple[str, float | None], dict[str, Any]] = {}
    for run in runs:
        if run.get("epsilon_by_round"):
            place = {"label": run["label"], "name": printed(run["label"]), "target": run["target_epsilon"]}
            found.setdefault((run["label"], run["target_epsilon"]), place | {"points": run["epsilon_by_round"]})
    return list(found.values())


def _classes(runs: list[Record]) -> list[dict[str, Any]]:
    """Accuracy of each class, averaged over seeds."""
    groups: dict[tuple[str, float | None, int], list[Record]] = {}
    for run in runs:
        for entry in run.get("classes") or []:
            groups.setdefault((run["label"], run["target_epsilon"], entry["class"]), []).append(entry)
    return [
        {
            "label": label,
            "name": printed(label),
            "target": target,
            "class": number,
            "accuracy": fmean(entry["accuracy"] for entry in group),
            "examples": group[0]["examples"],
        }
        for (label, target, number), group in groups.items()
    ]


def _attack(entry: Record, results: Results) -> dict[str, Any]:
    """One ROC, thinned, with the curve that the guarantee of the attacked run permits."""
    run = results.run_of(entry)
    epsilon, delta = (run.get("epsilon"), run.get("delta") or 0.0) if run else (None, 0.0)
    permitted = entry.get("permitted") or (permitted_curve(epsilon, delta) if epsilon is not None else None)
    return {
        "run": entry["run"],
        "of": title(entry, results),
        "attack": entry["attack"],
        "outsiders": entry["outsiders"],
        "roc": _thinned(entry["fpr"], entry["tpr"]),
        "permitted": list(zip(permitted["fpr"], permitted["tpr"], strict=True)) if permitted else None,
    }


def _histogram(entry: Record, results: Results) -> dict[str, Any]:
    """The scores of one attack, bar by bar; scores of different attacks have no unit in common."""
    bars = entry["histogram"]
    return {
        "of": title(entry, results),
        "attack": entry["attack"],
        "edges": bars["edges"],
        "members": bars["members"],
        "outsiders": bars["outsiders"],
    }


def _thinned(fpr: list[float], tpr: list[float]) -> list[tuple[float, float]]:
    """At most `ROC_POINTS` points, evenly over the decades: small false positive rates are what matters."""
    if len(fpr) <= ROC_POINTS:
        return list(zip(fpr, tpr, strict=True))
    rates = [10 ** (-5 * (1 - place / (ROC_POINTS - 1))) for place in range(ROC_POINTS)]
    places = sorted({0, len(fpr) - 1, *(max(0, bisect_right(fpr, rate) - 1) for rate in rates)})
    return [(fpr[place], tpr[place]) for place in places]


def _audit(entry: Record, results: Results) -> dict[str, Any]:
    return {
        "of": title(entry, results),
        "name": entry.get("name", "audit"),
        "verdict": entry["verdict"],
        "lower": entry["lower"],
        "upper": entry["upper"],
        "confidence": entry["confidence"],
    }


def title(entry: Record, results: Results) -> str:
    """What was attacked or audited, in print."""
    run = results.run_of(entry)
    if run is None:
        return printed(entry.get("method", "a model that is not here"))
    budget = f", epsilon {run['target_epsilon']:g}" if run["target_epsilon"] else ""
    return f"{printed(run['label'])}{budget}, seed {run['seed']}"
