"""The demo: what a newcomer sees first, on data that needs no download."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from reticent import data, methods
from reticent.experiments.compare import Compared, Comparison, Settings, compare
from reticent.experiments.recipe import Recipe
from reticent.experiments.sweep import Watcher
from reticent.experiments.training import prepare, train
from reticent.results import Result

EPSILONS = (1.5, 3.0)
"""Every method can be planned for both."""
EPSILON = EPSILONS[-1]
"""Of the run that is broken off, and of the one that is attacked."""


@dataclass(frozen=True)
class Demonstrated:
    """What the demo did: a run that was broken off and resumed, and every method compared."""

    resumed: Result
    compared: Compared

    def to_json(self) -> dict[str, object]:
        """All of it as plain data."""
        return {"resumed": self.resumed.answer(), **self.compared.to_json()}


def demo(out: Path, *, seed: int, tell: Callable[[str], None], watcher: Watcher) -> Demonstrated:
    """Break off a private run, resume it, then compare every method at two budgets and write the page."""
    resumed = _break_off_and_resume(out / "resumed", seed, tell)
    return Demonstrated(resumed, compare(comparison(seed), out / "compared", processes=2, watcher=watcher))


def comparison(seed: int) -> Comparison:
    """Every method once at each budget."""
    variants: dict[str, Settings] = {name: {} for name in methods.names()}
    return Comparison(settings={"data": "digits"}, variants=variants, epsilons=EPSILONS, seeds=(seed,))


def _break_off_and_resume(folder: Path, seed: int, tell: Callable[[str], None]) -> Result:
    recipe = Recipe(data="digits", epsilon=EPSILON, seed=seed)
    run = prepare(recipe.filled(), data.load(recipe.data), folder, resume=True)
    for step in run:
        if step.number == len(run) // 2:
            break
    run.save()
    tell(f"broke off after round {run.number} of {len(run)}; resuming")
    return train(recipe, folder, resume=True)
