"""The search for IMDb's settings: `python results/search.py NAME=VALUE,VALUE ...` tries all combinations.

A sketch of what the recipe does (Poisson draws, clipped gradients of two outputs, noise as the plan says, momentum,
averaged last weights) on sparse rows, which is ten times as quick. It learns from 20,000 training reviews and is judged
on the other 5,000, never on test reviews; search.log has what it saw. README.md says what was chosen and run by it.
"""

from __future__ import annotations

import itertools
import json
import sys
from functools import cache
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix, diags

from reticent.experiments.quoting import Scale, quote
from reticent.experiments.recipe import Recipe
from reticent.experiments.training import examples

LOG = Path(__file__).with_name("search.log")
ASIDE, MOMENTUM = 5000, 0.9
USUAL = {
    "features": "hashed-words",
    "epsilon": 3.0,
    "clip": 1.0,
    "step": 1.0,
    "rounds": 300,
    "rate": 0.12,
    "length": 8.0,
    "most": 0.0,
    "released": 50.0,
    "averaged": 0.15,
    "seed": 0,
}
"""`step` is the learning rate times the clip norm; `rate` the share of examples that a round draws on average; `length`
that of a review's row of words. A word counts no more than `most` on average in rows of length 1 (0: as it is), by
means that are released with `released` noise; `averaged` is the share of the rounds, the last ones, whose weights are
averaged."""


@cache
def _rows(features: str) -> tuple[csr_matrix, np.ndarray, csr_matrix, np.ndarray]:
    found = examples(Recipe(data="imdb", features=features, validation=ASIDE))
    parts = []
    for part in (found.train, found.test):
        x = part.x.numpy()
        owner, place = np.nonzero(x)
        counts = np.bincount(owner, minlength=len(x))
        rows = csr_matrix(
            ((1 / np.sqrt(counts))[owner].astype(np.float32), x[owner, place], np.r_[0, np.cumsum(counts)]),
            (len(x), found.buckets + 1),
        )
        parts += [rows, part.y.numpy()]
    return tuple(parts)


@cache
def _weighed(
    features: str, most: float, released: float, seed: int
) -> tuple[csr_matrix, np.ndarray, csr_matrix, np.ndarray]:
    x, y, others, truth = _rows(features)
    if not most:
        return x, y, others, truth
    mean = np.asarray(x.sum(0)).ravel() + released * np.random.default_rng(1 + 2 * seed).standard_normal(x.shape[1])
    shares = diags(most / np.maximum(mean / len(y), most))

    def scaled(rows: csr_matrix) -> csr_matrix:
        found = (rows @ shares).tocsr()
        lengths = np.sqrt(np.asarray(found.multiply(found).sum(1)).ravel())
        return (diags(1 / np.maximum(lengths, 1e-9)) @ found).astype(np.float32).tocsr()

    return scaled(x), y, scaled(others), truth


@cache
def _noise(epsilon: float, rate: float, rounds: int, released: float | None) -> float:
    recipe = Recipe(epsilon=epsilon, delta=1e-5, features="hashed-words", statistics_noise=released)
    return quote(recipe, Scale(data_size=20_000, sample_rate=rate, rounds=rounds)).plan.settings.noise_multiplier


def tried(
    features: str,
    epsilon: float,
    clip: float,
    step: float,
    rounds: int,
    rate: float,
    length: float,
    most: float,
    released: float,
    averaged: float,
    seed: int,
) -> float:
    """The accuracy on reviews set aside."""
    x, y, others, truth = _weighed(features, most, released, seed)
    noise, rng = _noise(epsilon, rate, rounds, released if most else None), np.random.default_rng(2 * seed)
    size, batch = len(y), rate * len(y)
    weights = np.zeros((x.shape[1] + 1, 2), np.float32)  # the last are the biases
    speed, mean, last = np.zeros_like(weights), np.zeros_like(weights), round(averaged * rounds)
    for number in range(rounds):
        drawn = np.flatnonzero(rng.random(size) < rate)
        rows = x[drawn] * np.float32(length)
        logits = rows @ weights[:-1] + weights[-1]
        wrong = 1 / (1 + np.exp((logits[:, 1] - logits[:, 0]) * (2 * y[drawn] - 1)))
        norm = np.sqrt(2) * wrong * np.sqrt(length**2 + 1)  # of both outputs, of row and bias
        pull = wrong * np.minimum(1, clip / np.maximum(norm, 1e-12)) * (1 - 2 * y[drawn])
        summed = np.append(rows.T @ pull, pull.sum())
        gradient = np.stack([-summed, summed], 1) + noise * clip * rng.standard_normal(weights.shape)
        speed = MOMENTUM * speed + gradient / batch
        weights -= (step / clip * speed).astype(np.float32)
        if number >= rounds - last:
            mean += weights / last
    answer = length * (others @ mean[:-1]) + mean[-1]
    return float((answer.argmax(1) == truth).mean())


def main(words: list[str]) -> None:
    """Every combination of what is said, those of the log apart."""
    said = dict(word.split("=") for word in words)
    known = [json.loads(line) for line in LOG.read_text().splitlines()] if LOG.exists() else []
    for values in itertools.product(*(value.split(",") for value in said.values())):
        given = {name: type(USUAL[name])(value) for name, value in zip(said, values, strict=True)}
        settings = USUAL | given
        if any(USUAL | line["settings"] == settings for line in known):
            continue
        line = {"settings": settings, "accuracy": round(tried(**settings), 4)}
        with LOG.open("a") as log:
            log.write(json.dumps(line) + "\n")
        print(json.dumps(given), line["accuracy"], flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
