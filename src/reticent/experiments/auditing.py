"""Audit a stored run: its ledger on disk, the method with its own numbers, and one more training with canaries."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path

from reticent import defences
from reticent.accounting.guarantee import round_up
from reticent.attacks.signals import confidence
from reticent.attacks.whitebox import logits_of
from reticent.audits.by_name import method_for, with_bug
from reticent.audits.canaries import judge_one_run
from reticent.audits.findings import Finding
from reticent.audits.stored import check_stored
from reticent.audits.verdict import Bounds, RunReport, Tell, audit, verdict_of
from reticent.checkpoint import replace_file
from reticent.data import make_canaries, plant
from reticent.errors import SettingError
from reticent.experiments.repeat import repeatable
from reticent.experiments.stored import recipe_of
from reticent.results import Result, read_result

AUDIT = "audit.json"
"""Where the report about a run is kept, in its folder; the page shows it."""


def audit_run(
    folder: str | Path,
    *,
    canaries: int | None = None,
    runs: int = 2000,
    alpha: float = 0.05,
    bug: str | None = None,
    seed: int | None = None,
    tell: Tell = lambda _finding: None,
) -> RunReport:
    """Look for anything that contradicts what a finished run claims, and keep the report in its folder.

    It is trained once more with `canaries` in it (None: 1000, or a quarter of its examples; 0: not at all). With a
    `bug` planted nothing is kept: what that did says nothing of the run.
    """
    run = Path(folder)
    with with_bug(bug):
        report = _report(run, canaries, runs=runs, alpha=alpha, seed=seed, tell=tell)
    if bug is None:
        replace_file(run / AUDIT, json.dumps(report.to_json(), indent=2).encode())
    return report


def _report(folder: Path, canaries: int | None, *, runs: int, alpha: float, seed: int | None, tell: Tell) -> RunReport:
    result = read_result(folder)
    recipe = recipe_of(result)
    if result.kind == "plain" or recipe.method in defences.names():
        who = "plain training" if result.kind == "plain" else recipe.method
        raise SettingError(f"{who} keeps no ledger and claims nothing: use `reticent attack`")
    found = [check_stored(folder, result.guarantee)]
    tell(found[0])
    method = method_for(recipe.method, result.noise_multiplier, recipe.max_grad_norm, recipe.options)
    step = audit(method, runs=runs, alpha=alpha, seed=seed, tell=tell)
    shown = alone = Bounds(step.lower, step.upper, step.delta)
    name = "one step"
    if canaries != 0:
        name, shown, finding = _one_run(result, canaries, alpha=alpha, seed=seed or 0)
        found.append(finding)
        tell(finding)
    findings = (*found, *step.findings)
    return RunReport(
        method=step.method,
        verdict=verdict_of(findings),
        findings=findings,
        lower=shown.lower,
        upper=shown.upper,
        confidence=step.confidence,
        delta=shown.delta,
        run=str(folder),
        name=name,
        step=alone,
    )


def _one_run(result: Result, canaries: int | None, *, alpha: float, seed: int) -> tuple[str, Bounds, Finding]:
    """Train the run's pipeline once more, with a random half of the canaries, and ask which half it was."""
    again = repeatable(result)
    dataset = again.dataset
    count = canaries if canaries is not None else min(1000, len(dataset.train) // 4)
    planted = plant(
        dataset.train, make_canaries(dataset.train, count, classes=dataset.classes, seed=seed), seed=seed + 1
    )
    trained = again.train(planted.train, seed=seed + 2)
    guarantee = trained.guarantee
    scores = confidence(logits_of(trained.model, planted.canaries.x), planted.canaries.y.numpy())
    found = judge_one_run(
        scores, planted.included.numpy(), epsilon=guarantee.epsilon, delta=guarantee.delta, alpha=alpha
    )
    claims = round_up(guarantee.epsilon, 3) if math.isfinite(guarantee.epsilon) else "nothing"
    says = f"{count} canaries prove epsilon > {found.lower:.3f}, the run claims {claims}"
    figures = asdict(found) | {"upper": guarantee.epsilon, "delta": guarantee.delta}
    bounds = Bounds(found.lower, guarantee.epsilon, guarantee.delta)
    return f"one run, {count} canaries", bounds, Finding("one run", not found.contradicted, says, figures)
