"""The demo: what a newcomer sees first, on data that needs no download."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from reticent import data
from reticent.experiments.recipe import Recipe
from reticent.experiments.training import prepare, train


def demo(out: Path, *, seed: int, tell: Callable[[str], object]) -> list[dict[str, Any]]:
    """Train DP-SGD and DP-Adam on digits at epsilon 3, the first in two halves."""
    answers = []
    for method in ("dpsgd", "dpadam"):
        recipe = Recipe(data="digits", method=method, epsilon=3.0, seed=seed)
        folder = out / method
        if method == "dpsgd":
            _half(recipe, folder, tell)
        answers.append(train(recipe, folder, resume=True))
    return answers


def _half(recipe: Recipe, folder: Path, tell: Callable[[str], object]) -> None:
    run = prepare(recipe.filled(), data.load(recipe.data), folder)
    for step in run:
        if step.number == len(run) // 2:
            break
    run.save()
    tell(f"broke off after round {run.number} of {len(run)}; resuming from {folder}\n")
