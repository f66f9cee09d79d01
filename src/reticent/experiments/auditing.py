"""Audit a run: its ledger, the method with its own numbers, and one more training with canaries."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from reticent import defences
from reticent.accounting import Guarantee
from reticent.accounting.guarantee import round_up
from reticent.attacks.signals import confidence
from reticent.attacks.whitebox import logits_of
from reticent.audits.by_name import method_for, with_bug
from reticent.audits.canaries import judge_one_run
from reticent.audits.findings import Finding
from reticent.audits.stored import check_stored
from reticent.audits.verdict import Bounds, RunReport, Tell, audit, verdict_of
from reticent.data import make_canaries, plant
from reticent.errors import SettingError
from reticent.experiments.repeat import Again, NotRepeatable, repeatable
from reticent.experiments.stored import refuse_nameless, with_parts
from reticent.files import private_folder, remove, write_private
from reticent.methods import Method
from reticent.results import Result, read_result
from reticent.results.sealing import seal

AUDIT = "audit.json"
"""Where the report about a run is kept, in its folder; the page shows it."""


@dataclass(frozen=True, kw_only=True)
class Auditing:
    """How to audit; `canaries` are 1000 or a quarter of the examples, if not said, and 0 for none."""

    canaries: int | None = None
    runs: int = 2000
    alpha: float = 0.05
    seed: int | None = None
    tell: Tell = lambda _finding: None


@dataclass(frozen=True, eq=False)
class Audited:
    """What is audited: a run's name, its method with its numbers, its ledger's finding, and how to train it again."""

    run: str
    method: Callable[[], Method]
    """Made when it is asked for: a planted bug is to be in it."""
    ledger: Callable[[], Finding]
    again: Callable[[], Again]


def audit_run(
    folder: str | Path,
    *,
    data: str | None = None,
    model: str | None = None,
    canaries: int | None = None,
    runs: int = 2000,
    alpha: float = 0.05,
    bug: str | None = None,
    seed: int | None = None,
    tell: Tell = lambda _finding: None,
) -> RunReport:
    """Look for anything that contradicts what a finished run claims, and keep the report in its folder.

    It is trained once more with `canaries` in it (None: 1000, or a quarter of its examples; 0: not at all). With a
    `bug` planted nothing is kept: what that did says nothing of the run. A run that was made in Python does not know
    where its `data` come from, nor which factory makes its `model`: they are named here.
    """
    run = Path(folder)
    result = with_parts(read_result(run), data=data, model=model)
    if result.kind == "plain" or result.method in defences.names():
        who = "plain training" if result.kind == "plain" else result.method
        raise SettingError(f"{who} keeps no ledger and claims nothing: use `reticent attack`")
    if canaries != 0 and result.beyond is not None:
        refuse_nameless(result.run, result.beyond, "--canaries 0 audits the ledger and one step alone")
    audited = Audited(
        str(run),
        lambda: _method(result),
        lambda: check_stored(run, result.guarantee),
        lambda: repeatable(result),
    )
    with with_bug(bug, result.method):
        report = audit_again(audited, Auditing(canaries=canaries, runs=runs, alpha=alpha, seed=seed, tell=tell))
    if bug is None:
        keep_audit(report, run)
    return report


def keep_audit(report: RunReport, run: Path) -> None:
    """Keep what an audit found in the private folder of a run: it comes from one more training on its examples."""
    write_private(private_folder(run) / AUDIT, seal(report.to_json(), indent=2))
    remove(run / AUDIT)  # of an older version


def _method(result: Result) -> Method:
    """The method of a stored run, with its own numbers."""
    if {"method", "options"} & set(result.beyond or ()):
        refuse_nameless(result.run, result.beyond or ())
    options = result.settings.part("options")
    clip = result.settings.get("max_grad_norm", float)
    return method_for(result.method, result.noise_multiplier, clip, {} if options is None else options.data)


def audit_again(audited: Audited, asked: Auditing) -> RunReport:
    """Everything that an audit finds about a run: its ledger, its step, and one more training."""
    found = [audited.ledger()]
    asked.tell(found[0])
    step = audit(audited.method(), runs=asked.runs, alpha=asked.alpha, seed=asked.seed, tell=asked.tell)
    shown = alone = Bounds(step.lower, step.upper, step.delta)
    name = "one step"
    if (again := _again(audited, asked)) is not None:
        name, shown, finding = _one_run(again, asked)
        found.append(finding)
        asked.tell(finding)
    findings = (*found, *step.findings)
    return RunReport(
        method=step.method,
        verdict=verdict_of(findings),
        findings=findings,
        lower=shown.lower,
        upper=shown.upper,
        confidence=step.confidence,
        delta=shown.delta,
        run=audited.run,
        name=name,
        step=alone,
    )


def _again(audited: Audited, asked: Auditing) -> Again | None:
    """The run to be trained with canaries; None if they are not wanted, or nobody said so and there can be none."""
    if asked.canaries == 0:
        return None
    try:
        return audited.again()
    except NotRepeatable:
        if asked.canaries is not None:
            raise
        return None


def _one_run(again: Again, asked: Auditing) -> tuple[str, Bounds, Finding]:
    """Train the run's pipeline once more, with a random half of the canaries, and ask which half it was."""
    dataset, seed = again.dataset, asked.seed or 0
    count = asked.canaries if asked.canaries is not None else min(1000, len(dataset.train) // 4)
    planted = plant(
        dataset.train, make_canaries(dataset.train, count, classes=dataset.classes, seed=seed), seed=seed + 1
    )
    trained = again.train(planted.train, seed=seed + 2)
    guarantee: Guarantee = trained.guarantee
    scores = confidence(logits_of(trained.model, planted.canaries.x), planted.canaries.y.numpy())
    found = judge_one_run(
        scores, planted.included.numpy(), epsilon=guarantee.epsilon, delta=guarantee.delta, alpha=asked.alpha
    )
    claims = round_up(guarantee.epsilon, 3) if math.isfinite(guarantee.epsilon) else "nothing"
    says = f"{count} canaries prove epsilon > {found.lower:.3f}, the run claims {claims}"
    figures = asdict(found) | {"upper": guarantee.epsilon, "delta": guarantee.delta}
    bounds = Bounds(found.lower, guarantee.epsilon, guarantee.delta)
    return f"one run, {count} canaries", bounds, Finding("one run", not found.contradicted, says, figures)
