"""`reticent ledger`: budgets of datasets, across runs and people."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

if TYPE_CHECKING:
    from reticent.accounting import Event
    from reticent.budgets import DatasetBudget, DatasetCharge

Place = Annotated[
    str | None, Option("--db", help="SQLite file or postgresql:// URL; default $RETICENT_LEDGER or the platform's own.")
]
Name = Annotated[str, Argument(help="Name of the dataset.")]
AsJson = Annotated[bool, Option("--json", help="Answer in JSON on stdout.")]

app = typer.Typer(name="ledger", no_args_is_help=True, help="Budgets of datasets, across runs and people.")


@app.command()
def create(
    name: Name,
    epsilon: Annotated[float, Option(help="The cap, for all runs together; it never changes.")],
    delta: Annotated[float, Option(help="The cap's delta.")],
    adjacency: Annotated[str, Option(help="zero-out, add-or-remove or replace.")] = "add-or-remove",
    unit: Annotated[str, Option(help="example, or person for runs with --groups.")] = "example",
    order: Annotated[float | None, Option(help="The Renyi order at which all runs are counted.")] = None,
    db: Place = None,
    as_json: AsJson = False,
) -> None:
    """Give a dataset a budget."""
    from reticent.budgets import DatasetLedger

    made = DatasetLedger(db).create(name, epsilon=epsilon, delta=delta, adjacency=adjacency, unit=unit, order=order)
    _tell(made, as_json)


@app.command()
def show(name: Name, db: Place = None, as_json: AsJson = False) -> None:
    """Tell the cap of a dataset, and how much of it is left."""
    from reticent.budgets import DatasetLedger

    _tell(DatasetLedger(db)[name], as_json)


@app.command("list")
def list_(db: Place = None, as_json: AsJson = False) -> None:
    """List the datasets of a ledger."""
    from reticent.budgets import DatasetLedger

    ledger = DatasetLedger(db)
    found = [ledger[name] for name in ledger]
    if as_json:
        print(json.dumps([_summary(one) for one in found]))
    else:
        print("\n".join(_line(_summary(one)) for one in found) or "no dataset yet: `reticent ledger create` makes one")


@app.command()
def history(name: Name, db: Place = None, as_json: AsJson = False) -> None:
    """List everything that was charged to a dataset, oldest first."""
    from reticent.budgets import DatasetLedger

    dataset = DatasetLedger(db)[name]
    if as_json:
        print(json.dumps([_charge(dataset, one) for one in dataset.history()]))
        return
    for one in dataset.history():
        share = 100 * dataset.share([one])
        print(f"{one.at[:19]}  {one.who}  {one.run[:12]}  {one.state:8}  {share:6.2f} %  {one.method or one.note}")


@app.command()
def charge(
    name: Name,
    note: Annotated[str, Option(help="What was released, and where: for those who read the history.")],
    epsilon: Annotated[float | None, Option(help="A release that is epsilon-DP, delta being 0.")] = None,
    rho: Annotated[float | None, Option(help="A release that is rho-zCDP.")] = None,
    noise_multiplier: Annotated[float | None, Option(help="Gaussian noise, relative to the sensitivity.")] = None,
    sample_rate: Annotated[float, Option(help="Of a Poisson draw, with --noise-multiplier.")] = 1.0,
    steps: Annotated[int, Option(help="So many releases of the kind.", min=1)] = 1,
    db: Place = None,
    as_json: AsJson = False,
) -> None:
    """Charge a release that no run of Reticent made, such as a table that was published."""
    from reticent.accounting import Spending
    from reticent.budgets import DatasetLedger

    released = _event(epsilon, rho, noise_multiplier, sample_rate)
    dataset = DatasetLedger(db)[name]
    dataset.charge(Spending({released: steps}, unit=dataset.unit), note=note)
    _tell(dataset, as_json)


@app.command()
def settle(
    folder: Annotated[Path, Argument(help="Folder of a run that is over, or will not go on.")],
    db: Place = None,
    as_json: AsJson = False,
) -> None:
    """Give back what a run did not use, as the ledger in its folder shows it; the run cannot go on after that."""
    from reticent.budgets import DatasetLedger

    dataset, settled = DatasetLedger(db).settle(folder)
    if as_json:
        print(json.dumps({"charge": _charge(dataset, settled), "dataset": _summary(dataset)}))
    else:
        print(f"run {settled.run[:12]} is {settled.state} at {100 * dataset.share([settled]):.2f} % of the cap")
        print(_line(_summary(dataset)))


def _event(epsilon: float | None, rho: float | None, noise_multiplier: float | None, rate: float) -> Event:
    from reticent.accounting import Concentrated, Gaussian, NoisyMax, Subsampled
    from reticent.errors import SettingError

    if [epsilon, rho, noise_multiplier].count(None) != 2:
        raise SettingError(
            "say one of --epsilon, --rho and --noise-multiplier: a (epsilon, delta) alone does not add up"
        )
    if epsilon is not None:
        return NoisyMax(epsilon)  # priced as anything that is epsilon-DP
    if rho is not None:
        return Concentrated(rho)
    inner = Gaussian(noise_multiplier or 0.0)
    return inner if rate == 1 else Subsampled(rate, inner)


def _summary(dataset: DatasetBudget) -> dict[str, object]:
    cap, charged = dataset.cap, dataset.history()
    return {
        "name": dataset.name,
        "epsilon": cap.epsilon,
        "delta": cap.delta,
        "adjacency": cap.adjacency,
        "unit": dataset.unit,
        "order": dataset.order,
        "share": dataset.share(charged),
        "charges": len(charged),
        "guarantee": str(dataset),
    }


def _charge(dataset: DatasetBudget, one: DatasetCharge) -> dict[str, object]:
    used = None if one.used is None else one.used.to_json()
    return {
        "run": one.run,
        "state": one.state,
        "method": one.method,
        "who": one.who,
        "at": one.at,
        "note": one.note,
        "share": dataset.share([one]),
        "before": one.before.to_json(),
        "planned": one.planned.to_json(),
        "used": used,
    }


def _line(told: dict[str, object]) -> str:
    return f"{told['name']}: {told['share']:.2%} of epsilon {told['epsilon']:g} taken by {told['charges']} charges"


def _tell(dataset: DatasetBudget, as_json: bool) -> None:
    told = _summary(dataset)
    print(json.dumps(told) if as_json else f"{_line(told)}\nall that is charged to it together: {dataset}")
