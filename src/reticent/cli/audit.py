"""`reticent audit`: what the runs themselves contradict, beside what is proved."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

if TYPE_CHECKING:
    from reticent.audits import Finding, Report


def audit(
    run: Annotated[Path | None, Argument(help="Folder of a finished run.")] = None,
    method: Annotated[str | None, Option(help="Audit a method instead: see `reticent methods`.")] = None,
    noise_multiplier: Annotated[float, Option(help="Noise of the audited step (with --method).")] = 1.0,
    max_grad_norm: Annotated[float | None, Option(help="Clip norm of the audited step (with --method).")] = None,
    runs: Annotated[int, Option(help="Steps without the canary, and as many with it.", min=10)] = 2000,
    canaries: Annotated[
        int | None, Option(help="Canaries of the one-run audit: a run is trained once more with them; 0: none.")
    ] = None,
    data: Annotated[str | None, Option(help="Dataset of a run that was made in Python.")] = None,
    model: Annotated[str | None, Option(help="package.module:function of a run that was made in Python.")] = None,
    alpha: Annotated[float, Option(help="Chance of accusing a right build.")] = 0.05,
    plant: Annotated[str | None, Option(help="Plant a bug first: see --list-bugs.")] = None,
    list_bugs: Annotated[bool, Option("--list-bugs", help="Print the bugs that can be planted.")] = False,
    seed: Annotated[int | None, Option(help="Make the audit repeatable.")] = None,
    as_json: Annotated[bool, Option("--json", help="Answer in JSON on stdout.")] = False,
) -> None:
    """Look for anything that contradicts the claimed privacy; exit code 1 if something does.

    The answer about a run is private, and kept in its folder as private/audit.json.
    """
    from reticent.audits import audit_method, audit_run

    if list_bugs:
        print(_bugs(as_json))
        return
    if run is not None and method is not None:
        raise typer.BadParameter("give a run's folder or --method, not both")
    tell = _silent if as_json else _tell
    report: Report
    if run is not None:
        report = audit_run(
            run, data=data, model=model, canaries=canaries, runs=runs, alpha=alpha, bug=plant, seed=seed, tell=tell
        )
    else:
        report = audit_method(
            method or "dpsgd",
            noise_multiplier=noise_multiplier,
            max_grad_norm=max_grad_norm,
            runs=runs,
            alpha=alpha,
            bug=plant,
            seed=seed,
            tell=tell,
        )
    print(json.dumps(report.to_json() | {"planted": plant}) if as_json else _in_words(report))
    if report.verdict == "contradicted":
        raise typer.Exit(1)


def _bugs(as_json: bool) -> str:
    """The bugs that can be planted; scripts read names, one a line."""
    from reticent.inside.planted import bugs

    known = {bug.name: bug.says for bug in bugs()}
    lines = (f"{name:26} {says}" if sys.stdout.isatty() else name for name, says in known.items())
    return json.dumps(known) if as_json else "\n".join(lines)


def _tell(finding: Finding) -> None:
    print(f"{'ok  ' if finding.holds else 'BAD '} {finding.probe}: {finding.says}", file=sys.stderr, flush=True)


def _silent(_finding: Finding) -> None:
    """Scripts read the answer, not the way to it."""


def _in_words(report: Report) -> str:
    from reticent.accounting.guarantee import round_up

    upper = f"epsilon {round_up(report.upper, 3)} is claimed" if math.isfinite(report.upper) else "nothing is claimed"
    line = f"{report.verdict}: epsilon > {report.lower:.3f} is shown, {upper} at delta {report.delta:g}"
    line += f" ({100 * report.confidence:g} % confidence)"
    line += f"; said by: {', '.join(report.said_by)}" if report.said_by else ""
    return f"{line}\n{report.sentence}"
