"""`reticent attack`: what a stored model gives away about its training examples."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

if TYPE_CHECKING:
    from reticent.attacks import AttackReport, Summary


def attack(
    run: Annotated[Path, Argument(help="Folder of a finished run.")],
    attacks: Annotated[str | None, Option(help="Names, with commas between; default: those usual in the game.")] = None,
    game: Annotated[
        str, Option(help="What shadows are trained on: online (half of the guessed records), shadow or salem (others).")
    ] = "online",
    models: Annotated[int, Option(help="Shadow models, an even number.", min=4)] = 8,
    records: Annotated[int | None, Option(help="Members to be told from as many non-members; default 1000.")] = None,
    canaries: Annotated[int, Option(help="Canaries dealt to the shadows, for figures of the worst case.", min=0)] = 0,
    canary_kind: Annotated[str, Option(help="mislabelled, near-duplicates, blank or noise.")] = "mislabelled",
    data: Annotated[str | None, Option(help="Dataset of a run that was made in Python.")] = None,
    model: Annotated[str | None, Option(help="package.module:function of a run that was made in Python.")] = None,
    jobs: Annotated[
        int | None, Option(help="Shadow models at the same time; default: one, or the cores of the cluster.", min=1)
    ] = None,
    cluster: Annotated[str | None, Option(help="Train them on a cluster: ray, ray:ADDRESS or ray://HOST:PORT.")] = None,
    out: Annotated[
        Path | None, Option(help="Folder for shadows and result; default: private/attack/ in the run's.")
    ] = None,
    seed: Annotated[int, Option(help="Which records, which shadows.")] = 0,
    as_json: Annotated[bool, Option("--json", help="Answer in JSON on stdout.")] = False,
) -> None:
    """Attack a model with shadows of its own pipeline, gone on with after a crash; the answer is private."""
    from reticent.experiments.attacking import attack_run

    report = attack_run(
        run,
        data=data,
        model=model,
        attacks=None if attacks is None else [name.strip() for name in attacks.split(",") if name.strip()],
        models=models,
        records=records,
        canaries=canaries,
        canary_kind=canary_kind,
        jobs=jobs,
        cluster=cluster,
        out=out,
        seed=seed,
        game=game,
        tell=tell,
    )
    print(json.dumps(report.to_json()) if as_json else in_words(report))


def tell(done: int, total: int) -> None:
    """Say on stderr how many shadow models there are."""
    print(f"shadow models: {done} of {total}", file=sys.stderr, flush=True)


def needs(row: Summary) -> list[str]:
    """How many others the next lower rate would take, if these are too few for it."""
    from reticent.attacks.summary import LOW_RATES

    given = {rate.fpr for rate in row.at_low_rates}
    return [f"{fpr:g} needs {round(1 / fpr)} others" for fpr in LOW_RATES if fpr not in given][:1]


def in_words(report: AttackReport) -> str:
    """What attacks found, for people."""
    rows = [row for row in (*report.attacks, report.pooled, report.canaries, report.blind) if row is not None]
    width = max(len(row.attack) for row in rows)
    lines = [f"{'':{width}}  AUC (95 %)            balanced accuracy  TPR at low FPR"]
    for row in rows:
        rates = ", ".join([*(f"{rate.tpr:.2%} at {rate.fpr:g}" for rate in row.at_low_rates), *needs(row)])
        interval = f"{row.auc:.3f} ({row.auc_low:.3f}-{row.auc_high:.3f})"
        lines.append(f"{row.attack:{width}}  {interval:20}  {row.heldout.balanced:.3f}              {rates}")
    lines.append(f"{'':{width}}  permitted by the guarantee: {report.permitted_balanced_accuracy:.3f}")
    shadows = f"{report.shadows} shadow model{'s' * (report.shadows > 1)}, game: {report.game}"
    lines.append(f"{shadows}; {report.records} members, as many others; held-out thresholds")
    return "\n".join([*lines, report.sentence])
