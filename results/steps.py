"""The best of the steps of steps.toml: `python results/steps.py OUT` reads the runs and prints it.

A step is chosen for each row and budget, and one for a method on all linear rows together: the best mean. A best step
at the end of what was tried is marked: the search should go on there.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import Any

Scores = dict[float, float]
"""Accuracy in percent on the examples set aside, by step."""


def read(out: Path) -> dict[str, Scores]:
    """What each row got at each budget, by step."""
    found: dict[str, Scores] = defaultdict(dict)
    for path in sorted(out.glob("steps*/runs/*/record.json")):
        record = json.loads(path.read_text())
        if record["status"] == "done":
            row = f"{record['label']}-eps{record['target_epsilon']:g}"
            found[row][record["recipe"]["lr"]] = round(100 * record["accuracy"], 2)
    return {row: dict(sorted(scores.items())) for row, scores in found.items()}


def together(found: dict[str, Scores]) -> dict[str, Scores]:
    """The mean of a method over the linear rows, by step, where all of them are done."""
    rows: dict[str, list[Scores]] = defaultdict(list)
    for row, scores in found.items():
        dataset_and_method = row.rsplit("-eps", 1)[0]
        method = dataset_and_method.removeprefix("fashion-").removeprefix("mnist-")
        if "-" not in method:  # networks have theirs in the name
            rows[f"linear-{method}"].append(scores)
    return {
        name: {step: round(fmean(one[step] for one in some), 2) for step in some[0] if all(step in one for one in some)}
        for name, some in rows.items()
    }


def chosen(scores: Scores) -> dict[str, Any]:
    """The best step, what it got, and whether it is the first or last of those tried."""
    best = max(scores, key=scores.__getitem__)
    return {"lr": best, "accuracy": scores[best], "at_the_end": best in (min(scores), max(scores)), "tried": scores}


if __name__ == "__main__":
    found = read(Path(sys.argv[1]))
    answer = {row: chosen(scores) for row, scores in (found | together(found)).items() if scores}
    for row, best in answer.items():
        print(f"{row:<36} lr {best['lr']:<8g} {best['accuracy']:.2f} %{'  (at the end)' if best['at_the_end'] else ''}")
