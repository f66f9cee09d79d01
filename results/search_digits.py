"""The search for digits: `python results/search_digits.py` tries settings on images set aside.

Every line is one setting, otherwise than usual in one or two things, with three seeds: runs of the product on all but
10,000 of MNIST's training images, always the same, which judge them. Never test images; search-digits.log has what was
seen, and what it holds is not tried again.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from searching import search

from reticent.experiments.presets import noise_of
from reticent.experiments.recipe import Recipe
from reticent.experiments.settling import settled
from reticent.experiments.training import examples, train

LOG = Path(__file__).with_name("search-digits.log")
DELTA, SEEDS = 1e-5, 3
USUAL = {"epsilon": 1.0, "share": 0.25, "step": 0.4, "batch": 1.0, "rounds": 1.0, "average": 0.15}
"""The share of the budget's mu for second moments; factors of the rule's step, batch and rounds; rounds averaged."""
TRIED: tuple[dict[str, float], ...] = (
    {},
    {"share": 0.15},
    {"batch": 2.0},
    {"step": 0.25},
    {"step": 0.6},
    {"batch": 2.0, "share": 0.15},
    {"batch": 4.0},
    {"step": 0.6, "batch": 2.0},
    {"step": 0.6, "average": 0.4},
    {"step": 0.8},
    {"step": 0.6, "share": 0.35},
    {"average": 0.4},
    {"epsilon": 3.0},
    {"epsilon": 3.0, "step": 0.6},
    {"epsilon": 8.0},
)


def tried(epsilon: float, share: float, step: float, batch: float, rounds: float, average: float) -> list[float]:
    """The share of images set aside that are told right, for each seed."""
    noise = noise_of(share, epsilon, DELTA)
    recipe = Recipe(data="mnist", epsilon=epsilon, delta=DELTA, whiten=noise, validation=10_000)
    rule = settled(recipe.filled(), examples(recipe.filled()))
    lr, size, epochs = rule.lr or 0.0, rule.batch_size or 0.0, rule.epochs or 0.0
    said = replace(recipe, lr=step * lr, batch_size=batch * size, epochs=batch * rounds * epochs, average_last=average)
    return [train(replace(said, seed=seed)).accuracy or 0.0 for seed in range(SEEDS)]


if __name__ == "__main__":
    search(LOG, ({**USUAL, **other} for other in TRIED), tried, digits=5)
