"""`reticent plan`: noise, rounds and batch for a budget, or for several; for PD-SGD, what its test lets pass."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from reticent.cli import account as flags
from reticent.cli import tables
from reticent.cli.account import numbers, read, said_method, shown

if TYPE_CHECKING:
    from reticent.experiments.quoting import Quote
    from reticent.experiments.recipe import Recipe


def plan(
    method: Annotated[
        str | None, Option(help="Which method: see `reticent methods`. [default: the preset's, or dpsgd]")
    ] = None,
    data: flags.Data = None,
    schema: tables.Schema = None,
    accept_schema: tables.Accept = False,
    label: tables.Label = None,
    epsilon: Annotated[float | None, Option(help="Budget.")] = None,
    delta: flags.Delta = None,
    size: flags.Size = None,
    adjacency: flags.Adjacency = None,
    data_size: flags.DataSize = None,
    batch_size: flags.BatchSize = None,
    sample_rate: flags.SampleRate = None,
    rounds: flags.Rounds = None,
    epochs: flags.Epochs = None,
    noise_multiplier: flags.Noise = None,
    settings: flags.Settings = None,
    accountant: flags.Accountant = "best",
    distance: Annotated[str | None, Option(help="PD-SGD: squared distances of batch gradients: 0.1,0.5.")] = None,
    dimension: Annotated[int, Option(help="PD-SGD: number of parameters, to normalise distances.")] = 7680,
    tune: Annotated[
        bool, Option("--tune", help="PD-SGD: gamma for several sigmas, from the largest --distance.")
    ] = False,
    chance: Annotated[float, Option(help="PD-SGD: with --tune, how often so distant a batch may pass.")] = 0.05,
    what_if: Annotated[bool, Option("--what-if", help="A table of budgets and the runs they get.")] = False,
    epsilons: Annotated[str | None, Option(help="What if: the budgets, 0.5,1,2,4.")] = None,
    parameters: Annotated[int | None, Option(help="What if: trained parameters, where no --data tells.", min=1)] = None,
    figure: Annotated[
        Path | None, Option(help="PD-SGD: write the paper's Figure 1 as an SVG file. What if: a page with a chart.")
    ] = None,
    as_json: flags.AsJson = False,
) -> None:
    """Find the noise, the rounds or the batch that a budget affords; for PD-SGD, what its test lets pass."""
    from reticent import catalogue
    from reticent.cli.deniability import deniability, tuned
    from reticent.errors import SettingError
    from reticent.experiments.quoting import quote

    given: dict[str, object] = {"noise_multiplier": noise_multiplier, "epsilon": epsilon, "delta": delta}
    given |= {"data": data, "batch_size": batch_size, "epochs": epochs}
    given |= {"size": size, "adjacency": adjacency, **tables.declared(schema, accept_schema, label)}
    given["method"] = method = method or said_method(settings)
    if method == "pd_sgd":
        recipe, _ = read(given, settings, data_size, sample_rate, rounds, accountant)
        distances = _listed(distance)
        if tune:
            print(tuned(recipe, distances, chance, as_json=as_json))
        else:
            print(deniability(recipe, distances, dimension, figure, as_json=as_json))
        return
    if method is not None and catalogue.promises_nothing(method):
        raise SettingError(f"{method} has no epsilon to plan for: {catalogue.find(method).guarantee}")
    if what_if:
        recipe, size, (counted, layers) = _shaped(given, settings, data_size, parameters)
        by_preset, asked = data is not None, _listed(epsilons)
        print(_table(recipe, size, counted, layers, asked, figure, by_preset=by_preset, as_json=as_json))
        return
    if epsilon is None:
        raise SettingError("a plan needs a budget: give --epsilon, or ask `reticent account` what given noise costs")
    suited = rounds is None and sample_rate is None  # who says these says how to train
    recipe, scale = read(given, settings, data_size, sample_rate, rounds, accountant, suited=suited)
    quoted = quote(recipe, scale)
    answer = {"method": recipe.method, **_answer(quoted)}
    print(json.dumps(answer) if as_json else "\n".join(_lines(recipe.method, quoted)))


def _shaped(
    given: dict[str, object], settings: list[str] | None, data_size: int | None, parameters: int | None
) -> tuple[Recipe, int, tuple[int, int]]:
    """The recipe of a table, how many private examples it is for, and the parameters and layers of its network."""
    from reticent.errors import SettingError
    from reticent.experiments.quoting import network_of
    from reticent.experiments.recipe import check, parse_changes, read_recipe

    said = {name: value for name, value in given.items() if value is not None}
    recipe = read_recipe(None, parse_changes(settings or []) | said)
    if given["data"] is not None:
        recipe, size, shape = network_of(recipe)
        shape = shape if parameters is None else (parameters, 1)
    elif parameters is not None and (data_size or recipe.size):
        size, shape = data_size or recipe.size or 0, (parameters, 1)
    else:
        raise SettingError("--what-if needs --data, or --data-size (or --size) and --parameters")
    check(recipe.filled() if given["data"] is not None else recipe)
    return recipe, size, shape


def _table(
    recipe: Recipe,
    size: int,
    parameters: int,
    layers: int,
    epsilons: list[float],
    figure: Path | None,
    *,
    by_preset: bool,
    as_json: bool,
) -> str:
    from reticent.cli import what_if as told
    from reticent.experiments.what_if import EPSILONS, what_if

    rows = what_if(
        recipe,
        size=size,
        parameters=parameters,
        layers=layers,
        epsilons=epsilons or EPSILONS,
        by_preset=by_preset,
    )
    if figure is not None:
        figure.write_text(told.page(rows, f"What if: {size} examples, {parameters} parameters"), encoding="utf-8")
    answer = {"size": size, "parameters": parameters, "rows": [row.to_json() for row in rows]}
    return json.dumps(answer) if as_json else told.in_words(rows, recipe.method)


def _found(quoted: Quote) -> str | None:
    """What was looked for, by the name that the method counts it by."""
    return quoted.plan.method.gate.proof.counts if quoted.found == "rounds" else quoted.found


def _answer(quoted: Quote) -> dict[str, object]:
    answer: dict[str, object] = {"found": _found(quoted), **numbers(quoted)}
    if quoted.plan.filter_order is not None:
        answer |= {"order": quoted.plan.filter_order, "planned_noise": quoted.plan.settings.noise_multiplier}
    return answer | {"guarantee": quoted.guarantee.to_json(), "says": str(quoted.guarantee)}


def _lines(method: str, quoted: Quote) -> list[str]:
    first = [f"released first, in the price: {event}" for event in quoted.plan.already]
    return [f"{method}: {quoted.guarantee}", *shown(numbers(quoted), _found(quoted)), *first]


def _listed(text: str | None) -> list[float]:
    """The numbers of a comma list."""
    from reticent.errors import SettingError

    try:
        return [float(part) for part in text.split(",")] if text else []
    except ValueError:
        raise SettingError(f"{text!r} is not a list of numbers: write them like 1,0.8,0.6") from None
