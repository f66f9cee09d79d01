"""`make soak`: everything, with the figures of docs/reliability.md; `--share 0.01` for a hundredth of it."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from soak.damage import soak_damage
from soak.faults import METHODS, soak_faults
from soak.fuzzing import soak_fuzz
from soak.kills import soak_kills
from soak.races import soak_races
from soak.readers import readers
from soak.tally import Tally

LANES = ("faults", "races,kills,damage,fuzz")
FAULTS, FUZZ, DAMAGED, RACES, KILLS = 2500, 110_000, 200, 30, 10


def _busy() -> float:
    """How long processors have worked for this process and its children: what a part costs on a busy machine too."""
    return sum(os.times()[:4])


def _side_by_side(words: list[str]) -> int:
    """Everything in half the time: what takes longest beside all the rest."""
    started = [subprocess.Popen([sys.executable, "-m", "soak", *words, "--only", parts]) for parts in LANES]
    return max(one.wait() for one in started)


def main() -> None:
    """Run it all; the exit code is 1 if anything went wrong."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--share", type=float, default=1.0, help="how much of it")
    asked.add_argument("--only", help="which parts, by commas, one after the other; default: all, two at a time")
    asked.add_argument("--methods", default=",".join(METHODS), help="whose operations fail, by commas")
    words = asked.parse_args()
    if words.only is None:
        sys.exit(_side_by_side(sys.argv[1:]))
    share, parts, methods = words.share, words.only.split(","), tuple(words.methods.split(","))
    torch.set_num_threads(1)
    wrong, busy = 0, [_busy()]

    def told(tally: Tally, start: float) -> None:
        nonlocal wrong
        wrong += len(tally.wrong)
        print(f"{tally}\n  {time.monotonic() - start:.0f} s, {_busy() - busy[0]:.0f} s of processors", flush=True)
        busy[0] = _busy()

    def many(count: int) -> int:
        return max(1, round(share * count))

    # What forks comes first: a process that has computed may not be forked any more.
    start = time.monotonic()
    if "races" in parts:
        told(soak_races(many(RACES)), start)
    if "faults" in parts:
        start = time.monotonic()
        told(soak_faults(methods, each=-(-many(FAULTS) // len(METHODS))), start)
    if "kills" in parts:
        start = time.monotonic()
        told(soak_kills(many(KILLS)), start)
    if {"damage", "fuzz"} & set(parts):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            every = readers(folder)
            if "damage" in parts:
                start = time.monotonic()
                told(soak_damage(folder / "run", many(DAMAGED)), start)
            if "fuzz" in parts:
                start = time.monotonic()
                told(soak_fuzz(every, folder, many(FUZZ) // len(every) + 1), start)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
