"""`reticent doctor`: looks a model, its loss and its data over for what would make a printed epsilon false."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from typer import Option


def doctor(
    data: Annotated[str, Option(help="Dataset, or your own: see `reticent data list`.")] = "digits",
    model: Annotated[str | None, Option(help="Network; the preset's if not said.")] = None,
    features: Annotated[str | None, Option(help="Features computed first, such as scattering.")] = None,
    rows: Annotated[int, Option(help="How many examples are looked at.", min=3)] = 24,
    set_: Annotated[list[str] | None, Option("--set", help="key=value, for any setting of `train`.")] = None,
    seed: Annotated[int, Option(help="Which examples, and the first weights.")] = 0,
    as_json: Annotated[bool, Option("--json", help="Answer in JSON on stdout.")] = False,
) -> None:
    """Train briefly on neighbouring datasets and compare; exit code 1 if something is wrong. The answer is private."""
    from reticent.audits import doctor as look
    from reticent.experiments.parts import model_of
    from reticent.experiments.recipe import check, parse_changes, read_recipe
    from reticent.experiments.training import examples

    given = {"data": data, "model": model, "features": features, "seed": seed}
    recipe = read_recipe(None, {**given, **parse_changes(set_ or [])}).filled()
    check(recipe)
    dataset = examples(recipe)
    found = look(model_of(recipe, dataset), dataset.train, rows=rows, seed=seed)
    print(json.dumps(found.to_json()) if as_json else found)
    if not found.healthy:
        raise typer.Exit(1)
