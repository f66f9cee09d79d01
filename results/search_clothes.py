"""The search for patches on clothes: `python results/search_clothes.py` tries them under privacy, on images set aside.

Every line is one run on Fashion-MNIST, by the rule, on all but 10,000 training images, the same as in
search_moments.py, which judge it: patches beside scattering-whitened, with and without whitening by second moments.
Most of what there is without patches is in search-moments.log. Never test images; search-clothes.log has what was seen,
and what it holds is not tried again.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

import reticent as rt
from reticent.data import extract, load
from reticent.data.features.beside import beside
from reticent.data.features.patches import RandomPatches
from reticent.experiments.people import set_aside
from reticent.experiments.presets import noise_of

LOG = Path(__file__).with_name("search-clothes.log")
DELTA = 1e-5
TRIED: tuple[dict[str, Any], ...] = (
    {"epsilon": 3.0, "share": 0.25, "numbers": 1000},
    {"epsilon": 1.0, "share": 0.25, "numbers": 1000},
    {"epsilon": 3.0, "share": None, "numbers": 3000},
    {"epsilon": 8.0, "share": 0.25, "numbers": 1000},
    {"epsilon": 3.0, "share": 0.25, "numbers": 1000, "seed": 1},
    {"epsilon": 3.0, "share": 0.25, "seed": 1},
    {"epsilon": 3.0, "share": 0.25},
    {"epsilon": 8.0, "share": 0.25},
    {"epsilon": 1.0, "share": None, "numbers": 3000},
    {"epsilon": 8.0, "share": None, "numbers": 3000},
    {"epsilon": 3.0, "share": None, "numbers": 1000},
)
"""With 1,000 numbers of patches both are 4,000, of which second moments can be released; no numbers are no patches."""


def tried(epsilon: float, share: float | None, numbers: int = 0, seed: int = 0) -> float:
    """The share of images set aside that are told right."""
    clothes = replace(load("fashion-mnist"), test=None)
    parts = [extract(clothes, "scattering-whitened")]
    if numbers:
        parts.append(extract(clothes, RandomPatches((1, 28, 28), numbers=numbers)))
    both = beside(clothes, ["scattering-whitened", "patches"][: len(parts)], parts)
    learn, judge = set_aside(both.train, 10_000)
    examples: Any = learn.x, learn.y
    if share is not None:
        examples = rt.normalise(examples, noise_multiplier=noise_of(share, epsilon, DELTA), whiten=True)
    linear = nn.Linear(learn.x.shape[1], 10)
    found = rt.fit(linear, examples, epsilon=epsilon, delta=DELTA, loss="cross_entropy", seed=seed)
    accuracy: float = found.evaluate(judge.x, judge.y)["accuracy"]
    return accuracy


def main() -> None:
    """All that is to be tried and is not in the log."""
    torch.set_num_threads(1)
    known = [json.loads(line)["settings"] for line in LOG.read_text().splitlines()] if LOG.exists() else []
    for settings in TRIED:
        if settings not in known:
            line = {"settings": settings, "accuracy": round(tried(**settings), 4)}
            with LOG.open("a") as log:
                log.write(json.dumps(line) + "\n")
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
