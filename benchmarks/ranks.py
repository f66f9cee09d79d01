"""Two ranks of one thread against one process of two threads: the same run of the CIFAR network, in turn.

python -m benchmarks.ranks [--cases cifar256,cifar1024] [--worlds "1 thread,2 threads,2 ranks"] [--turns 9]
    [--out benchmarks/results]

On a busy machine only processor times tell something: two threads take at least half of what one takes, so two ranks
take at most `bound` as long as they, but for the time that messages are under way.
"""

from __future__ import annotations

import argparse
import math
import os
import shlex
import statistics
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import torch

import reticent as rt
from benchmarks.models import CASES
from benchmarks.tables import made_by
from benchmarks.worlds import Took, World, world
from reticent.experiments.record import about_this_machine

GOAL = 1.15
SIZE = 5_000
WORLDS = {"1 thread": (1, 1), "2 threads": (1, 2), "2 ranks": (2, 1)}
"""Processes, and threads of each."""


def training(case: str) -> rt.Run:
    """A run of the network of a case, on made-up examples."""
    network, examples = CASES[case].build(), CASES[case].examples(SIZE)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    method = rt.methods.dpsgd(noise_multiplier=1.0)
    batch = CASES[case].batch
    return rt.Run(network, optimizer, examples, method=method, batch_size=batch, rounds=10_000, delta=1e-5, seed=0)


def measured(worlds: dict[str, World], case: str, turns: int, rounds: int) -> dict[str, list[Took]]:
    """What each took; in turn, so that whatever else the machine does falls on all alike."""
    for name, one in worlds.items():
        one.make(training, case)
        one.go(2)
        print(f"{case}, {name}: ready", file=sys.stderr, flush=True)
    took: dict[str, list[Took]] = {name: [] for name in worlds}
    for _ in range(turns):
        for name, one in worlds.items():
            took[name].append(one.go(rounds))
    return took


def rows(case: str, took: dict[str, list[Took]]) -> Iterator[str]:
    """A line for each world."""
    threads = took.get("2 threads")
    for name, found in took.items():
        cells = [f"{1e3 * middle(found, part):.1f}" for part in ("wall", "busiest", "together")]
        ratios = [one.wall / two.wall for one, two in zip(found, threads, strict=True)] if threads else []
        ratio = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})" if ratios else "-"
        half = middle(took["1 thread"], "together") / 2 if "1 thread" in took else math.nan
        bound = f"{middle(found, 'busiest') / half:.2f}" if name == "2 ranks" else ""
        yield f"| {case} | {name} | {' | '.join(cells)} | {ratio} | {bound} |"


def middle(found: list[Took], part: str) -> float:
    return statistics.median(getattr(one, part) for one in found)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.ranks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", default="cifar256,cifar1024")
    parser.add_argument("--worlds", default=",".join(WORLDS))
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    command = shlex.join(["python", "-m", "benchmarks.ranks", *sys.argv[1:]])
    lines = ["# Two ranks beside two threads", "", made_by({"command": command, **about_this_machine().to_json()}), ""]
    lines += [
        f"A round of DP-SGD, in turn: {asked.turns} turns of {asked.rounds} rounds, medians; {os.getloadavg()[0]:.0f} "
        f"processes wanted the {os.cpu_count()} cores. Goal: 2 ranks of 1 thread take at most {GOAL} of 2 threads. "
        "`bound` is the processor time of the busier rank by half of that of 1 thread.", "",
        "| case | | ms | processor ms, busiest | processor ms, together | time to 2 threads | bound |",
        "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    with ExitStack() as stack:
        worlds = {name: stack.enter_context(world(*WORLDS[name])) for name in asked.worlds.split(",")}
        for case in asked.cases.split(","):
            lines += rows(case, measured(worlds, case, asked.turns, asked.rounds))
    print("\n".join(lines))
    if asked.out is not None:
        (asked.out / "ranks.md").write_text("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
