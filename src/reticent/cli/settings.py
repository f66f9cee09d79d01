"""`reticent settings`: everything that can be set, on the command line, in a TOML file or with --set."""

from __future__ import annotations

import json
from typing import Annotated

from typer import Argument, Option

SAYS = {
    "data": "dataset by name, or a file of your own",
    "data_folder": "where datasets lie, if not in $RETICENT_DATA or the data folder",
    "schema": "file that declares what your own data may hold: see `reticent data schema`",
    "accept_schema": "take the proposed schema, read from the records, as public knowledge",
    "label": "column to predict, for a proposed schema",
    "test_data": "file like data to measure accuracy on",
    "features": "features computed first, such as scattering",
    "model": "network by name, or package.module:function of your own; that of the preset, or linear",
    "activation": "relu, tanh or tempered (a tempered sigmoid); tanh",
    "method": "see `reticent methods`",
    "options": "the method's own options, as a table in a TOML file",
    "epsilon": "privacy budget; the noise follows from it",
    "claimed_epsilon": "with noise_multiplier: as long as the paper's own rule says this is spent; no guarantee",
    "delta": "chance that the promise does not hold; at most 1e-5 and 1/(10 N) if not said",
    "size": "declared number of examples: then one more or less changes no number",
    "adjacency": "what is promised: zero-out, add-or-remove (needs size) or replace",
    "groups": "column, or file beside arrays, that says whose each row is: sizes and guarantee are by person then",
    "most_rows": "so many rows of a person at most take part in a round; all of them if not said",
    "views": "views of each image, averaged before the bound: mirror, shift=4, mirror+shift=4+count=8",
    "epochs": "attempts x batch / N; by the rule",
    "batch_size": "expected batch size; by the rule",
    "optimizer": "sgd or adam; the method's own if not said",
    "lr": "learning rate; by the rule",
    "lr_share": "how many times the rule's step a step is, where lr is not said",
    "momentum": "momentum of sgd; by the rule, 0.9",
    "lr_schedule": "constant, linear or cosine, over the kept updates",
    "average_last": "share of the last rounds whose weights are averaged into the model; by the rule",
    "noise_multiplier": "noise as a multiple of the clip norm, instead of epsilon",
    "max_grad_norm": "clip norm; the method's own",
    "centre": "noise multiplier of a mean that is released first and taken away from what the network sees",
    "whiten": "noise multiplier of second moments that are released first: what is long in all rows is shrunk; "
    "0 for none where a preset has it",
    "statistics_noise": "noise multiplier of the channels' means and squares, released first to normalise by; "
    "of hashed words: of how many texts have each; 0 for none where a preset has it",
    "fill_noise": 'noise multiplier of the means that stand for missing cells (fill = "noisy" in the schema)',
    "holdout": "so many training examples are public and judge updates (sa_dpsgd)",
    "validation": "so many training examples are set aside and judge the model instead of the test examples",
    "subset": "learn from so many training examples only, the same ones every time",
    "curve": "judge the model on the test examples so many times along the way, with epsilon; chooses nothing",
    "max_physical_batch_size": "examples in memory at once; changes no result",
    "private_diagnostics": "keep private/diagnostics.jsonl; never show it",
    "seed": "for tests and papers; the guarantee will say so",
}


def settings(
    method: Annotated[
        str | None, Argument(help="Whose options to list besides. [default: what train takes, mostly dpsgd]")
    ] = None,
    data: Annotated[str | None, Option(help="Show the values for this dataset.")] = None,
    epsilon: Annotated[float | None, Option(help="Show the values for this budget: some depend on it.")] = None,
    as_json: Annotated[bool, Option("--json", help="Answer in JSON on stdout.")] = False,
) -> None:
    """List every setting of `train` and the options of a method, with what they are if nothing is said."""
    from reticent import catalogue
    from reticent.experiments.recipe import Recipe, read_recipe

    if data is None:
        recipe = Recipe(method=method or "dpsgd")
    else:
        recipe = read_recipe(None, {"method": method, "data": data, "epsilon": epsilon}, suited=True).filled()
    method = recipe.method
    values = recipe.to_json()
    rows = {name: {"does": says, "value": values[name]} for name, says in SAYS.items()}
    told = catalogue.find(method).options
    for name, default in catalogue.options(method).items():
        if name not in rows:
            rows[name] = {"does": f"{method}: {told.get(name, name)}", "value": recipe.options.get(name, default)}
    if as_json:
        print(json.dumps(rows, default=str))
        return
    for name, row in rows.items():
        print(f"{name:<24} {row['does']}" + ("" if row["value"] in (None, {}) else f" [{row['value']}]"))
    if data is not None and epsilon is None:
        print("some depend on the budget: give --epsilon to see what train would take")
    print("by the rule: from the number of examples, the parameters and the budget (docs/choosing.md)")
