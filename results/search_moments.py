"""The search for whitening by the private examples: `python results/search_moments.py` tries it on images set aside.

Every line is one run of the product, one seed, on all but 10,000 training images, which judge it: without whitening,
and with noise that takes a share of the budget, at the rule's step or a part of it. Never test images;
search-moments.log has what was seen, and what it holds is not tried again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch

from reticent.experiments.presets import noise_of
from reticent.experiments.recipe import Recipe
from reticent.experiments.settling import settled
from reticent.experiments.training import examples, train

LOG = Path(__file__).with_name("search-moments.log")
DELTA = 1e-5
DATA = ("mnist", "fashion-mnist", "cifar10")
FEATURES = {"fashion-mnist": "scattering-whitened", "cifar10": "scattering-photos"}
"""What the presets had then, where they have patches as well by now."""
TRIED: tuple[tuple[float | None, float], ...] = ((None, 1.0), (0.25, 1.0), (0.25, 0.4))
"""Which share of the budget's mu the second moments take, and of the rule's step."""


def wanted() -> Iterator[dict[str, object]]:
    """All settings, one dataset after another."""
    for name in DATA:
        for epsilon in (3.0, 1.0, 8.0):
            for share, step in TRIED:
                yield {"data": name, "epsilon": epsilon, "share": share, "step": step}


def tried(data: str, epsilon: float, share: float | None, step: float) -> float:
    """The share of images set aside that are told right."""
    noise = 0.0 if share is None else noise_of(share, epsilon, DELTA)  # 0: none, though the preset has it
    features = FEATURES.get(data)
    recipe = Recipe(data=data, features=features, epsilon=epsilon, delta=DELTA, whiten=noise, validation=10_000, seed=0)
    rule = settled(recipe.filled(), examples(recipe.filled()))
    accuracy = train(replace(recipe, lr=step * (rule.lr or 0.0), average_last=rule.average_last)).accuracy
    assert accuracy is not None
    return accuracy


def main() -> None:
    """All that is to be tried and is not in the log."""
    torch.set_num_threads(1)
    known = [json.loads(line)["settings"] for line in LOG.read_text().splitlines()] if LOG.exists() else []
    for settings in wanted():
        if settings not in known:
            line = {"settings": settings, "accuracy": round(tried(**settings), 4)}  # type: ignore[arg-type]
            with LOG.open("a") as log:
                log.write(json.dumps(line) + "\n")
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
