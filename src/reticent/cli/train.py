"""`reticent train`: one run, from data to guarantee."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

from typer import Option

from reticent.cli import tables

if TYPE_CHECKING:
    from reticent.budgets import DatasetBudget
    from reticent.results import Result
    from reticent.run import Run, Step

    Tell: TypeAlias = Callable[[Run, Step], None]


def train(
    data: tables.Data = None,
    schema: tables.Schema = None,
    accept_schema: tables.Accept = False,
    label: tables.Label = None,
    test_data: tables.TestData = None,
    method: Annotated[
        str | None, Option(help="Method: see `reticent methods`. [default: the preset's, or dpsgd]")
    ] = None,
    model: Annotated[
        str | None, Option(help="Network, or package.module:function for your own. [default: the preset's, or linear]")
    ] = None,
    activation: Annotated[str | None, Option(help="relu, tanh or a tempered sigmoid. [default: tanh]")] = None,
    features: Annotated[str | None, Option(help="Features computed first, such as scattering.")] = None,
    public: Annotated[
        str | None, Option(help="Features from public data: imagenet (EfficientNet-Lite0); the guarantee names it.")
    ] = None,
    epsilon: Annotated[float | None, Option(help="Privacy budget; the noise follows from it.")] = None,
    delta: Annotated[float | None, Option(help="[default: the smaller of 1e-5 and 1/(10 N)]")] = None,
    size: Annotated[
        int | None, Option(help="Declared number of examples: then one more or less changes no number.", min=1)
    ] = None,
    adjacency: Annotated[
        str | None, Option(help="zero-out, add-or-remove (needs --size) or replace: what is promised.")
    ] = None,
    groups: Annotated[
        str | None, Option(help="Column that says whose each row is: the guarantee is for whole persons.")
    ] = None,
    epochs: Annotated[float | None, Option(help="Attempts x batch / N. [default: by the rule]")] = None,
    batch_size: Annotated[float | None, Option(help="Expected batch size. [default: by the rule]")] = None,
    lr: Annotated[float | None, Option(help="Learning rate. [default: by the rule]")] = None,
    noise_multiplier: Annotated[
        float | None, Option(help="Noise relative to the clip norm, instead of epsilon.")
    ] = None,
    max_grad_norm: Annotated[float | None, Option(help="Clip norm. [default: the method's, mostly 1]")] = None,
    max_physical_batch_size: Annotated[
        int | None, Option(help="Examples in memory at once; changes no result.")
    ] = None,
    holdout: Annotated[
        int | None, Option(help="So many training examples are public and judge updates (sa_dpsgd).")
    ] = None,
    private_diagnostics: Annotated[
        bool, Option("--private-diagnostics", help="Keep private/diagnostics.jsonl; never show it.")
    ] = False,
    seed: Annotated[int | None, Option(help="For tests and papers; the guarantee will say so.")] = None,
    config: Annotated[Path | None, Option(help="A TOML file with any of these settings.")] = None,
    set_: Annotated[
        list[str] | None, Option("--set", help="key=value, for any setting or option of the method.")
    ] = None,
    out: Annotated[Path | None, Option(help="Folder for ledger, checkpoints, model and result.")] = None,
    resume: Annotated[bool, Option("--resume", help="Go on with the run in --out; the folder is enough.")] = False,
    dataset: Annotated[
        str | None, Option(help="Charge the run to the budget of this dataset: see `reticent ledger`.")
    ] = None,
    ledger: Annotated[str | None, Option(help="Where that budget is kept; default $RETICENT_LEDGER.")] = None,
    tensorboard: Annotated[
        bool, Option("--tensorboard", help="Write the public numbers of each round to tensorboard/ in --out too.")
    ] = False,
    as_json: Annotated[bool, Option("--json", help="Answer in JSON on stdout.")] = False,
) -> None:
    """Train a model privately and state what is proved about it."""
    from reticent.cli.progress import progress
    from reticent.errors import SettingError
    from reticent.experiments.locks import locked
    from reticent.experiments.presets import features_by
    from reticent.experiments.recipe import parse_changes, read_recipe, recorded
    from reticent.experiments.stored import kept_recipe
    from reticent.experiments.training import train as run
    from reticent.inside.several import here

    flags = {
        "data": data,
        **tables.declared(schema, accept_schema, label, test_data),
        "method": method,
        "model": model,
        "activation": activation,
        "features": features_by(public, features),
        "epsilon": epsilon,
        "delta": delta,
        "size": size,
        "adjacency": adjacency,
        "groups": groups,
        "epochs": epochs,
        "batch_size": batch_size,
        "lr": lr,
        "noise_multiplier": noise_multiplier,
        "max_grad_norm": max_grad_norm,
        "max_physical_batch_size": max_physical_batch_size,
        "holdout": holdout,
        "private_diagnostics": private_diagnostics or None,
        "seed": seed,
    }
    given = {name: value for name, value in flags.items() if value is not None}
    changes, ranks = parse_changes(set_ or []) | given, here()
    if resume and out is not None and config is None and not changes:
        recipe = ranks.share(partial(kept_recipe, out))
    else:
        recipe = read_recipe(config, changes, suited=True)
    if out is None and (resume or private_diagnostics):
        raise SettingError("--resume and --private-diagnostics need the folder of the run: give it with --out")
    budget = _budget(dataset, ledger)
    if not ranks.leads:  # of several processes the first writes and tells
        run(recipe, resume=resume, charge_to=budget)
        return
    board = _board(recipe.method, out) if tensorboard else None
    alone = locked(out) if out is not None else nullcontext()  # two at work on one ledger would both write each line
    with alone, progress(f"{recipe.method} on {recipe.data}") as tell:
        tellers = tell if board is None else _both(tell, board)
        result = run(recipe, out, resume=resume, progress=tellers, charge_to=budget)
    print(json.dumps(result.answer()) if as_json else in_words(result, recorded(recipe)))


def _budget(name: str | None, place: str | None) -> DatasetBudget | None:
    from reticent.budgets import DatasetLedger
    from reticent.errors import SettingError

    if name is not None:
        return DatasetLedger(place)[name]
    if place is not None:
        raise SettingError("--ledger keeps budgets by name: say which one with --dataset")
    return None


def _board(method: str, out: Path | None) -> Tell:
    """What writes for TensorBoard; whatever is missing is told before anything is trained."""
    from reticent import defences
    from reticent.errors import SettingError
    from reticent.integrations.tracking import TensorBoard

    if out is None:
        raise SettingError("--tensorboard writes into the folder of the run: give it with --out")
    if method in defences.names():
        raise SettingError(f"{method} has no rounds that could be shown: leave out --tensorboard")
    return TensorBoard(out / "tensorboard")


def _both(one: Tell, two: Tell) -> Tell:
    def tell(run: Run, step: Step) -> None:
        one(run, step)
        two(run, step)

    return tell


def in_words(result: Result, record: str | None = None) -> str:
    """What came of a run, for people; `record` names the row of results/best.toml that has the same recipe."""
    names = ("epochs", "batch_size", "lr", "momentum", "average_last", "max_grad_norm")
    released_first = ("centre", "whiten", "statistics_noise", "fill_noise")
    settings = {name: result.settings.get(name, float) for name in (*names, *released_first)}
    numbers = ", ".join(f"{name} {value:g}" for name, value in settings.items() if value)
    return "\n".join(
        [
            f"{result.settings.need('method', str)} on {result.data}, {result.model}",
            f"settings   {numbers}, noise_multiplier {result.noise_multiplier:.4g}",
            *([f"by rule    {', '.join(_ruled(result))} (docs/choosing.md)"] if result.by_rule else []),
            *([f"recipe     that of {record} in 'The best we get', results/README.md"] if record is not None else []),
            *_judged(result),
            f"guarantee  {result.guarantee}",
            *_claimed(result),
            f"rounds     {result.rounds}, kept {result.kept}, {took(result.seconds)}",
            *([f"written to {result.out}"] if result.out else []),
        ]
    )


def _ruled(result: Result) -> list[str]:
    share = result.settings.get("lr_share", float)
    return [f"lr (times {share:g})" if name == "lr" and share is not None else name for name in result.by_rule]


def took(seconds: float | None) -> str:
    """How long something took, where that may be said."""
    return "how long it took is private" if seconds is None else f"{seconds:.1f} s"


def _judged(result: Result) -> list[str]:
    """How well it does on the test examples, beside whoever always answers the same."""
    errors = result.metrics if result.accuracy is None else None
    if errors and "rmse" in errors:
        mean = f"always the mean: MAE {errors['baseline_mae']:.4g}, RMSE {errors['baseline_rmse']:.4g}"
        model = f"MAE {errors['mae']:.4g}, RMSE {errors['rmse']:.4g}, R2 {errors['r2']:.3f}"
        return [f"errors     {model} ({result.accuracy_on})", f"baseline   {mean}"]
    if result.accuracy is None:
        return ["accuracy   not measured (no test examples: give them as --test-data)"]
    always = result.commonest
    return [
        f"accuracy   {100 * result.accuracy:.2f} % ({result.accuracy_on})",
        *([f"baseline   {100 * always:.2f} % (always the commonest class)"] if always is not None else []),
    ]


def _claimed(result: Result) -> list[str]:
    if result.claimed_epsilon is None or result.guarantee.as_claimed is None:
        return []
    return [f"claimed    epsilon {result.claimed_epsilon:.2f}: {result.guarantee.as_claimed.get('text')}"]
