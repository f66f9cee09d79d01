"""`reticent demo`: the main job on embedded data, in under a minute."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Annotated

from typer import Option


def demo(
    out: Annotated[Path | None, Option(help="Folder to write to; a temporary one if not said.")] = None,
    seed: Annotated[int, Option(help="The demo is repeatable.")] = 0,
    as_json: Annotated[bool, Option("--json", help="Answer in JSON on stdout.")] = False,
) -> None:
    """Train on embedded data, break off half-way, resume, and state the guarantee."""
    from reticent.cli.train import _in_words
    from reticent.experiments.demo import demo as run

    def tell(line: str) -> None:
        if not as_json:
            print(line)

    with tempfile.TemporaryDirectory() as temporary:
        answers = run(out or Path(temporary), seed=seed, tell=tell)
    if as_json:
        print(json.dumps(answers))
    else:
        for answer in answers:
            print(_in_words(answer), end="\n\n")
