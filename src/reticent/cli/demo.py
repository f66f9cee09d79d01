"""`reticent demo`: the main job on embedded data."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

from typer import Option


def demo(
    out: Annotated[Path, Option(help="Folder to write to.")] = Path("out/demo"),
    seed: Annotated[int, Option(help="The demo is repeatable.")] = 0,
    as_json: Annotated[bool, Option("--json", help="Answer in JSON on stdout.")] = False,
) -> None:
    """Train on embedded data, break off, resume, compare every method, and write the page."""
    from reticent.cli.compare import in_words as compared
    from reticent.cli.compare import view
    from reticent.cli.train import in_words as trained
    from reticent.experiments.demo import demo as run
    from reticent.methods import names

    with view(len(names()) + 1) as watcher:
        answer = run(out, seed=seed, tell=_tell, watcher=watcher)
    if as_json:
        print(json.dumps(answer))
        return
    print(f"\nresumed half-way:\n{trained(answer['resumed'])}\n\nevery method:\n{compared(answer)}")


def _tell(line: str) -> None:
    print(line, file=sys.stderr)
