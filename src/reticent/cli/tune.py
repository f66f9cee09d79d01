"""`reticent tune`: an honest search for settings, with what it costs in the guarantee of the model."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from reticent.cli import tables

if TYPE_CHECKING:
    from reticent.results import Result
    from reticent.tuning import Tuned


def tune(
    data: Annotated[str, Option(help="A table, .npz or folder of images; or see `reticent data list`.")],
    epsilon: Annotated[float, Option(help="Privacy budget of the whole search, and so of the model.")],
    aside: Annotated[int, Option(help="So many training examples are set aside to judge, or to search on.", min=1)],
    aside_is_public: Annotated[
        bool, Option("--aside-is-public", help="They are public and get no privacy; otherwise they judge with noise.")
    ] = False,
    on_public: Annotated[
        bool, Option("--on-public", help="Search on the public examples alone: then only the last run costs anything.")
    ] = False,
    try_: Annotated[
        list[str] | None, Option("--try", help="Values to choose from: lr=0.5,1,2. Default: multiples of the rule's.")
    ] = None,
    trials: Annotated[float, Option(help="How many trials to expect; how many there are stays secret.")] = 8.0,
    score_noise: Annotated[float, Option(help="Noise on the number of right answers of private judges.")] = 10.0,
    schema: tables.Schema = None,
    accept_schema: tables.Accept = False,
    label: tables.Label = None,
    test_data: tables.TestData = None,
    model: Annotated[str | None, Option(help="Network, or package.module:function for your own.")] = None,
    method: Annotated[str, Option(help="Method: see `reticent methods`.")] = "dpsgd",
    delta: Annotated[float | None, Option(help="Default: the smaller of 1e-5 and 1/(10 N).")] = None,
    seed: Annotated[int | None, Option(help="For tests and papers; the guarantee will say so.")] = None,
    set_: Annotated[list[str] | None, Option("--set", help="key=value, for any other setting.")] = None,
    out: Annotated[Path | None, Option(help="Folder for ledger, model and result; private while at work.")] = None,
    resume: Annotated[bool, Option("--resume", help="Go on where the search in --out stopped.")] = False,
    jobs: Annotated[
        int | None, Option(help="Trials at the same time; default: one, or as many as the cluster has cores.", min=1)
    ] = None,
    cluster: Annotated[str | None, Option(help="Make them on a cluster: ray, ray:ADDRESS or ray://HOST:PORT.")] = None,
    as_json: Annotated[bool, Option("--json", help="Answer in JSON on stdout.")] = False,
) -> None:
    """Search for settings and release the best model: what the search costs is part of its epsilon."""
    from reticent.errors import SettingError
    from reticent.experiments.locks import locked
    from reticent.experiments.recipe import parse_changes, read_recipe
    from reticent.experiments.tuning import Searched, answer, tune_recipe
    from reticent.tuning import grid

    if resume and out is None:
        raise SettingError("--resume needs the folder of the search: give it with --out")
    given = {"data": data, "epsilon": epsilon, "method": method, "delta": delta, "seed": seed, "model": model}
    given |= tables.declared(schema, accept_schema, label, test_data)
    recipe = read_recipe(None, parse_changes(set_ or []) | {k: v for k, v in given.items() if v is not None})
    search = Searched(
        aside=aside,
        public=aside_is_public,
        on="public" if on_public else "judges",
        choices=grid(_tried(try_)) if try_ else None,
        trials=trials,
        score_noise=score_noise,
    )
    with locked(out) if out is not None else nullcontext():
        result, tuned = tune_recipe(recipe, search, out, resume=resume, jobs=jobs, cluster=cluster)
    print(json.dumps(answer(result, tuned)) if as_json else in_words(result, tuned))


def _tried(settings: list[str]) -> dict[str, list[float]]:
    from reticent.errors import SettingError
    from reticent.experiments.recipe import parse_changes

    try:
        return {name: [float(part) for part in text.split(",")] for name, text in parse_changes(settings).items()}
    except ValueError:
        raise SettingError(f"--try takes numbers with commas between, like lr=0.5,1,2, not {settings}") from None


def in_words(result: Result, tuned: Tuned) -> str:
    """What came of a search, for people."""
    from reticent.cli.train import in_words as trained

    settings = ", ".join(f"{name} {value:g}" for name, value in tuned.settings.items())
    cost = ", ".join(f"{name.replace('_', ' ')} {value:.4g}" for name, value in tuned.cost.items())
    lines = [f"chosen     {settings}", f"score      {tuned.score:.3f} ({tuned.score_on})", f"cost       {cost}"]
    return "\n".join([trained(result), *lines])
