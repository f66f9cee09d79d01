"""Defaults against tuned settings: `python results/defaults.py OUT [CELL ...]` does the runs, and resumes.

For each dataset: the rule's own settings on the test examples, three seeds. Then a search on training examples that
are set aside (never the test examples; without what presets release first, or do otherwise than the rule): steps of
1/4 to 4 times the rule's at two clip norms, one seed each. Then the best of them on the test examples, the same three
seeds. Every run leaves a record.json with its recipe, seed and commit.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from reticent.experiments.job import Job, perform
from reticent.experiments.quoting import of_dataset
from reticent.experiments.recipe import Recipe
from reticent.results import Result

SEEDS = (0, 1, 2)
FACTORS, CLIPS = (0.25, 0.5, 1.0, 2.0, 4.0), (1.0, 0.1)


@dataclass(frozen=True)
class Cell:
    """A dataset with the network its preset has, how many judge the search, and what is searched."""

    recipe: Recipe
    validation: int
    factors: tuple[float, ...] = FACTORS
    clips: tuple[float, ...] = CLIPS


CELLS = {
    "adult": Cell(Recipe(data="adult", epsilon=3.0, whiten=0.0), 6512),
    "digits": Cell(Recipe(data="digits", epsilon=3.0), 287),
    "location30": Cell(Recipe(data="location30", epsilon=3.0, whiten=0.0), 801),
    "mnist": Cell(Recipe(data="mnist", epsilon=3.0), 10_000, (0.5, 1.0, 2.0), (1.0,)),
    "fashion-mnist": Cell(
        Recipe(data="fashion-mnist", features="scattering-whitened", epsilon=3.0), 10_000, (0.5, 1.0, 2.0), (1.0,)
    ),
    "imdb": Cell(Recipe(data="imdb", epsilon=3.0, statistics_noise=0.0), 5000, (0.5, 1.0, 2.0), (1.0,)),
}


def tried(cell: Cell) -> Iterator[tuple[float, float]]:
    """What the search tries: multiples of the rule's step, in units of the clip norm, and clip norms."""
    for clip in cell.clips:
        for factor in cell.factors:
            yield factor, clip


def changed(recipe: Recipe, factor: float, clip: float) -> Recipe:
    """The recipe with a multiple of the rule's step at this clip norm; everything else is the rule's."""
    rule, _ = of_dataset(recipe)
    assert rule.lr is not None
    return replace(recipe, lr=rule.lr * factor / clip, max_grad_norm=clip, average_last=rule.average_last)


def done(name: str, label: str, recipe: Recipe, out: Path) -> Result:
    """What came of one run, now or before."""
    result = perform(Job(name=name, label=label, recipe=recipe), out / "runs" / name, lambda *_: None)
    said = result.error if result.accuracy is None else f"{100 * result.accuracy:.2f} %"
    print(f"{recipe.data} {name}: {said}", flush=True)
    return result


def run(cell: Cell, out: Path) -> None:
    """All runs of a cell."""
    for seed in SEEDS:
        done(f"rule-seed{seed}", "rule", replace(cell.recipe, seed=seed), out)
    scored = {}
    for factor, clip in tried(cell):
        searched = changed(replace(cell.recipe, validation=cell.validation, seed=0), factor, clip)
        found = done(f"search-{factor:g}-{clip:g}", "search", searched, out)
        scored[factor, clip] = found.accuracy or 0.0
    best = max(scored, key=scored.__getitem__)
    if best == (1.0, 1.0):
        print(f"{cell.recipe.data}: the best is the rule's own, which has run", flush=True)
    else:
        for seed in SEEDS:
            done(f"tuned-seed{seed}", "tuned", changed(replace(cell.recipe, seed=seed), *best), out)
    (out / "complete").touch()


if __name__ == "__main__":
    for name in sys.argv[2:] or list(CELLS):
        run(CELLS[name], Path(sys.argv[1]) / "defaults" / name)
