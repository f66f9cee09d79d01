"""`reticent compare`: many methods at equal proved epsilon, and the page that shows them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from reticent.cli import tables

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from reticent.experiments.compare import Compared
    from reticent.experiments.job import Job
    from reticent.experiments.sweep import Watcher
    from reticent.results import Result


def compare(
    out: Annotated[Path, Option(help="Folder for everything; what is there is gone on with.")],
    data: tables.Data = None,
    schema: tables.Schema = None,
    accept_schema: tables.Accept = False,
    label: tables.Label = None,
    test_data: tables.TestData = None,
    methods: Annotated[str | None, Option(help="Methods, by commas: see `reticent methods`.")] = None,
    epsilons: Annotated[str | None, Option(help="Budgets, by commas; the same for every method.")] = None,
    seeds: Annotated[int | None, Option(help="Runs of each method and budget.", min=1)] = None,
    model: Annotated[
        str | None, Option(help="Network, or package.module:function for your own; the preset's if not said.")
    ] = None,
    features: Annotated[str | None, Option(help="Features computed first, such as scattering.")] = None,
    public: Annotated[
        str | None, Option(help="Features from public data: imagenet (EfficientNet-Lite0); the guarantee names it.")
    ] = None,
    delta: Annotated[float | None, Option(help="Default: the smaller of 1e-5 and 1/(10 N).")] = None,
    epochs: Annotated[float | None, Option(help="Attempts x batch / N.")] = None,
    config: Annotated[Path | None, Option(help="A TOML file with any of this, and variants of methods.")] = None,
    set_: Annotated[
        list[str] | None, Option("--set", help="key=value for all methods, METHOD.key=value for one.")
    ] = None,
    gradient_cost: Annotated[
        list[str] | None, Option(help="METHOD=FACTOR: add a DP-SGD that computes so many times the gradients.")
    ] = None,
    jobs: Annotated[
        int | None, Option(help="Runs at the same time; default: one, or as many as the cluster has cores.", min=1)
    ] = None,
    cluster: Annotated[str | None, Option(help="Run on a cluster: ray, ray:ADDRESS or ray://HOST:PORT.")] = None,
    dataset: Annotated[
        str | None, Option(help="Refused: only single runs are charged to a dataset (`reticent train --dataset`).")
    ] = None,
    as_json: Annotated[bool, Option("--json", help="Answer in JSON on stdout.")] = False,
) -> None:
    """Compare methods at equal proved epsilon; a page, a table and one record a run are written.

    DP-SGD and training without privacy are always included. Run it again after any crash: it goes on where it was.
    """
    refuse_charge(dataset, "a comparison")
    from reticent.experiments.compare import compare as run
    from reticent.experiments.compare import read_comparison
    from reticent.experiments.presets import features_by
    from reticent.experiments.recipe import parse_changes

    flags = {
        "data": data,
        **tables.declared(schema, accept_schema, label, test_data),
        "methods": _parts(methods),
        "epsilons": _numbers(epsilons),
        "seeds": seeds,
        "model": model,
        "features": features_by(public, features),
        "delta": delta,
        "epochs": epochs,
        "gradient_costs": _costs(gradient_cost),
    }
    given = {name: value for name, value in flags.items() if value is not None}
    comparison = read_comparison(config, parse_changes(set_ or []) | given)
    with view(len(comparison.jobs())) as watcher:
        compared = run(comparison, out, processes=jobs, watcher=watcher, cluster=cluster)
    print(json.dumps(compared.to_json()) if as_json else in_words(compared))
    if compared.failed:
        raise typer.Exit(1)


def refuse_charge(dataset: str | None, what: str) -> None:
    """Refuse to charge a dataset for runs with known noise, and for training without any."""
    from reticent.errors import SettingError

    if dataset is not None:
        raise SettingError(
            f"{what} is not charged to dataset {dataset!r}: its runs take seeds, so that their noise can be computed "
            "again, and one of them trains without privacy. Compare on public data, then charge the one run that you "
            f"release: `reticent train --dataset {dataset}`"
        )


# -- reading the options ---------------------------------------------------------------------------------------------


def _parts(text: str | None) -> list[str] | None:
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def _numbers(text: str | None) -> list[float] | None:
    parts = _parts(text)
    return None if parts is None else [_number("--epsilons", part) for part in parts]


def _number(option: str, text: str) -> float:
    from reticent.errors import SettingError

    try:
        return float(text)
    except ValueError as error:
        raise SettingError(f"{option} takes numbers, not {text!r}") from error


def _costs(settings: list[str] | None) -> dict[str, float] | None:
    from reticent.errors import SettingError

    found = {}
    for setting in settings or []:
        label, equals, cost = setting.partition("=")
        if not equals:
            raise SettingError(f"--gradient-cost takes METHOD=NUMBER, not {setting!r}")
        found[label.strip()] = _number("--gradient-cost", cost)
    return found or None


# -- one view of all runs --------------------------------------------------------------------------------------------


@contextmanager
def view(total: int) -> Iterator[Watcher]:
    """Something that shows all runs on stderr: bars on a terminal, a line for each finished run elsewhere."""
    if not sys.stderr.isatty():
        yield _Lines(total)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bars:
        yield _Bars(bars, total)


def told(result: Result) -> str:
    """One finished run in a line."""
    from reticent.accounting.guarantee import round_up
    from reticent.cli.train import took

    if not result.done:
        return f"{result.run}: FAILED: {result.error}"
    accuracy = "not measured" if result.accuracy is None else f"{100 * result.accuracy:.2f} %"
    epsilon = "no guarantee" if result.epsilon is None else f"epsilon {round_up(result.epsilon, 3)} proved"
    return f"{result.run}: {accuracy}, {epsilon}, {took(result.wall_seconds)}"


class _Lines:
    def __init__(self, total: int):
        self._total, self._ended = total, 0

    def began(self, job: Job) -> None:
        """Said when it ends."""

    def advanced(self, job: Job, done: int, total: int) -> None:
        """Said when it ends."""

    def ended(self, job: Job, result: Result) -> None:  # noqa: ARG002 - the result says it all
        self._ended += 1
        print(f"[{self._ended} of {self._total}] {told(result)}", file=sys.stderr, flush=True)


class _Bars:
    def __init__(self, bars: Progress, total: int):
        self._bars, self._rows = bars, dict[str, "TaskID"]()
        self._all = bars.add_task("all runs", total=total)

    def began(self, job: Job) -> None:
        self._rows[job.name] = self._bars.add_task(f"  {job.name}", total=None)

    def advanced(self, job: Job, done: int, total: int) -> None:
        self._bars.update(self._rows[job.name], completed=done, total=total)

    def ended(self, job: Job, result: Result) -> None:
        if job.name in self._rows:
            self._bars.remove_task(self._rows.pop(job.name))
        self._bars.advance(self._all)
        self._bars.console.print(told(result), highlight=False, markup=False)


# -- the answer ------------------------------------------------------------------------------------------------------


def in_words(compared: Compared) -> str:
    """The summary of a comparison for people."""
    from reticent.accounting.guarantee import round_up
    from reticent.report.names import printed

    lines = [f"{'method':<22}{'budget':>8}{'proved':>10}{'accuracy':>14}{'to DP-SGD':>11}{'seeds':>7}"]
    for row in compared.summary:
        unknown = "not measured" if row.seeds else "failed"
        accuracy = f"{100 * row.accuracy.mean:.2f} %" if row.accuracy else unknown
        gain = f"{100 * row.gain.mean:+.2f}" if row.gain else ""
        budget = f"{row.target_epsilon:g}" if row.target_epsilon is not None else ""
        proved = round_up(row.epsilon, 3) if row.epsilon is not None else "none"
        lines.append(f"{printed(row.label):<22}{budget:>8}{proved:>10}{accuracy:>14}{gain:>11}{row.seeds:>7}")
    lines += [compared.picking.sentence] if compared.picking is not None else []
    lines += [f"FAILED {name}: {error}" for name, error in compared.failed.items()]
    return "\n".join([*lines, f"page       {compared.page}", f"results    {compared.results}, {compared.csv}"])
