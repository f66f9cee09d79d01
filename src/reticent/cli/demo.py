"""`reticent demo`: the main job on embedded data."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

from typer import Option

ATTACKS = ("loss", "population", "reference", "shadow", "lira", "rmia")


def demo(
    out: Annotated[Path, Option(help="Folder to write to.")] = Path("out/demo"),
    seed: Annotated[int, Option(help="The demo is repeatable.")] = 0,
    as_json: Annotated[bool, Option("--json", help="Answer in JSON on stdout.")] = False,
) -> None:
    """Train on embedded data, break off, resume, compare every method, attack one, and write the page."""
    from reticent.attacks import attack_run
    from reticent.cli.attack import in_words as attacked
    from reticent.cli.attack import tell
    from reticent.cli.compare import in_words as compared
    from reticent.cli.compare import view
    from reticent.cli.train import in_words as trained
    from reticent.experiments.demo import EPSILON, comparison
    from reticent.experiments.demo import demo as run
    from reticent.report import write_page

    with view(len(comparison(seed).jobs())) as watcher:
        shown = run(out, seed=seed, tell=_tell, watcher=watcher)
    print("\nattacking DP-SGD:", file=sys.stderr)
    folder = shown.compared.out / "runs" / f"dpsgd-eps{EPSILON:g}-seed{seed}"
    print(attacked(attack_run(folder, attacks=ATTACKS, jobs=2, seed=seed, tell=tell)), file=sys.stderr)
    write_page(shown.compared.out)
    if as_json:
        print(json.dumps(shown.to_json()))
        return
    print(f"\nresumed half-way:\n{trained(shown.resumed)}\n\nevery method:\n{compared(shown.compared)}")


def _tell(line: str) -> None:
    print(line, file=sys.stderr)
