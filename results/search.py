"""The search for IMDb's settings: `python results/search.py [EPSILON NAME=VALUE,VALUE ...]` tries every combination.

Each setting is tried once, on 5,000 training reviews set aside (never on the test reviews), and what came of it is
written to search.jsonl, where it is found again. The choice itself is not paid for: see README.md.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from functools import cache
from pathlib import Path

from reticent import data
from reticent.evaluating import accuracy
from reticent.experiments.recipe import Recipe, read_recipe
from reticent.experiments.settling import settled
from reticent.experiments.training import examples, prepare

LOG = Path(__file__).with_name("search.jsonl")
ASIDE = {"imdb": 5000, "adult": 6512, "location30": 801, "mnist": 10_000, "fashion-mnist": 10_000}


@cache
def _examples(name: str, features: str | None) -> data.Dataset:
    return examples(Recipe(data=name, features=features, validation=ASIDE[name]))


def tried(recipe: Recipe) -> float:
    """The accuracy on examples set aside."""
    found = recipe.filled()
    dataset = _examples(found.data, found.features)
    run = prepare(settled(found, dataset), dataset)
    for _ in run:
        pass
    assert dataset.test is not None
    return accuracy(run.model, dataset.test.x, dataset.test.y)


def main(words: list[str]) -> None:
    """Every combination of what is said, those of the log apart."""
    names, values = zip(*(word.split("=") for word in words), strict=True)
    known = {line["settings"] for line in map(json.loads, LOG.read_text().splitlines())} if LOG.exists() else set()
    for chosen in itertools.product(*(value.split(",") for value in values)):
        changes = dict(zip(names, chosen, strict=True))
        said = " ".join(f"{name}={value}" for name, value in changes.items())
        if said in known:
            continue
        start = time.process_time()
        found = tried(read_recipe(None, {"delta": 1e-5, "seed": 0, **changes}))
        line = {"settings": said, "accuracy": round(found, 4), "core_seconds": round(time.process_time() - start, 1)}
        with LOG.open("a") as log:
            log.write(json.dumps(line) + "\n")
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
