"""`reticent audit`: what the runs themselves contradict, beside what is proved."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

if TYPE_CHECKING:
    from reticent.audits.findings import Finding
    from reticent.methods import Method
    from reticent.results import Result

AUDIT = "audit.json"
"""Where the answer about a run is kept, in its folder; the page shows it."""


def audit(
    run: Annotated[Path | None, Argument(help="Folder of a finished run.")] = None,
    method: Annotated[str | None, Option(help="Audit a method instead: see `reticent methods`.")] = None,
    noise_multiplier: Annotated[float, Option(help="Noise of the audited step (with --method).")] = 1.0,
    max_grad_norm: Annotated[float | None, Option(help="Clip norm of the audited step (with --method).")] = None,
    runs: Annotated[int, Option(help="Steps without the canary, and as many with it.", min=10)] = 2000,
    canaries: Annotated[
        int | None, Option(help="Canaries of the one-run audit: a run is trained once more with them; 0: none.")
    ] = None,
    alpha: Annotated[float, Option(help="Chance of accusing a right build.")] = 0.05,
    plant: Annotated[str | None, Option(help="Plant a bug first: see --list-bugs.")] = None,
    list_bugs: Annotated[bool, Option("--list-bugs", help="Print the bugs that can be planted.")] = False,
    seed: Annotated[int | None, Option(help="Make the audit repeatable.")] = None,
    as_json: Annotated[bool, Option("--json", help="Answer in JSON on stdout.")] = False,
) -> None:
    """Look for anything that contradicts the claimed privacy; exit code 1 if something does.

    The answer about a run is kept in its folder as audit.json.
    """
    from reticent.checkpoint import replace_file
    from reticent.inside.planted import bugs, find

    if list_bugs:
        known = {bug.name: bug.says for bug in bugs()}
        lines = (f"{name:26} {says}" if sys.stdout.isatty() else name for name, says in known.items())
        print(json.dumps(known) if as_json else "\n".join(lines))  # scripts read names, one a line
        return
    if run is not None and method is not None:
        raise typer.BadParameter("give a run's folder or --method, not both")
    tell = _silent if as_json else _tell
    settings: dict[str, Any] = {"runs": runs, "alpha": alpha, "seed": seed, "tell": tell}
    with find(plant).planted() if plant is not None else nullcontext():
        if run is not None:
            answer = _audit_run(run, canaries, **settings)
        else:
            answer = _audit_method(_method(method or "dpsgd", noise_multiplier, max_grad_norm), **settings)
    if run is not None and plant is None:  # what a planted bug did says nothing of the run
        replace_file(run / AUDIT, json.dumps(answer, indent=2).encode())
    print(json.dumps(answer | {"planted": plant}) if as_json else _in_words(answer))
    if answer["verdict"] == "contradicted":
        raise typer.Exit(1)


def _method(name: str, noise_multiplier: float | None, max_grad_norm: float | None, **options: Any) -> Method:
    from reticent import methods

    known = methods.options(name)
    given = {"noise_multiplier": noise_multiplier, "max_grad_norm": max_grad_norm} | options
    return methods.get(name, **{key: value for key, value in given.items() if value is not None and key in known})


def _audit_method(method: Method, **settings: Any) -> dict[str, Any]:
    from reticent.audits.verdict import audit as look

    return look(method, **settings).to_json()


def _audit_run(
    folder: Path, canaries: int | None, *, tell: Callable[[Finding], None], **settings: Any
) -> dict[str, Any]:
    """The ledger on disk, the method with the run's own numbers, and one more training with canaries in it."""
    from reticent.audits.stored import check_stored
    from reticent.errors import SettingError
    from reticent.experiments.stored import recipe_of
    from reticent.results import read_result

    result = read_result(folder)
    recipe = recipe_of(result)
    if not (folder / "ledger.jsonl").exists():
        who = "plain training" if result.kind == "plain" else recipe.method
        raise SettingError(f"{who} keeps no ledger and claims nothing: use `reticent attack`")
    found = [check_stored(folder, result.guarantee)]
    tell(found[0])
    method = _method(recipe.method, result.noise_multiplier, recipe.max_grad_norm, **recipe.options)
    answer = _audit_method(method, tell=tell, **settings)
    answer["step"] = {name: answer[name] for name in ("lower", "upper", "delta")}
    answer["name"] = "one step"
    if canaries != 0:
        found.append(_one_run(result, canaries, alpha=settings["alpha"], seed=settings["seed"] or 0))
        tell(found[-1])
        answer |= {name: found[-1].figures[name] for name in ("lower", "upper", "delta")}
        answer["name"] = f"one run, {found[-1].figures['canaries']} canaries"
    answer["run"] = str(folder)
    answer["findings"] = [*(_plain(finding) for finding in found), *answer["findings"]]
    answer["said_by"] = [finding["probe"] for finding in answer["findings"] if not finding["holds"]]
    answer["verdict"] = "contradicted" if answer["said_by"] else "consistent"
    return answer


def _plain(finding: Finding) -> dict[str, Any]:
    """Plain JSON data; an infinite number is null."""
    figures = {name: None if value in (math.inf, -math.inf) else value for name, value in finding.figures.items()}
    return asdict(finding) | {"figures": figures}


def _one_run(result: Result, canaries: int | None, *, alpha: float, seed: int) -> Finding:
    """Train the run's pipeline once more, with a random half of the canaries, and ask which half it was."""
    from reticent.attacks.signals import confidence
    from reticent.attacks.whitebox import logits_of
    from reticent.audits.canaries import judge_one_run
    from reticent.audits.findings import Finding
    from reticent.data import make_canaries, plant
    from reticent.experiments.repeat import repeatable

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
    upper = guarantee.epsilon if math.isfinite(guarantee.epsilon) else None
    claims = "nothing" if upper is None else f"{upper:.3f}"
    says = f"{count} canaries prove epsilon > {found.lower:.3f}, the run claims {claims}"
    figures = asdict(found) | {"upper": upper, "delta": guarantee.delta}
    return Finding("one run", not found.contradicted, says, figures)


def _tell(finding: Finding) -> None:
    print(f"{'ok  ' if finding.holds else 'BAD '} {finding.probe}: {finding.says}", file=sys.stderr, flush=True)


def _silent(_finding: Finding) -> None:
    """Scripts read the answer, not the way to it."""


def _in_words(answer: dict[str, Any]) -> str:
    upper = "nothing is claimed" if answer["upper"] is None else f"epsilon {answer['upper']:.3f} is claimed"
    line = f"{answer['verdict']}: epsilon > {answer['lower']:.3f} is shown, {upper} at delta {answer['delta']:g}"
    line += f" ({100 * answer['confidence']:g} % confidence)"
    return line if not answer["said_by"] else f"{line}; said by: {', '.join(answer['said_by'])}"
