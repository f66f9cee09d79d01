"""Two ranks of one thread against one process of two threads: the same run of the CIFAR network, in turn.

python -m benchmarks.ranks [--cases cifar256,cifar1024] [--turns 9] [--out benchmarks/results]
"""

from __future__ import annotations

import argparse
import shlex
import statistics
import sys
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
FIRST = "2 threads"


def training(case: str) -> rt.Run:
    """A run of the network of a case, on made-up examples."""
    network, examples = CASES[case].build(), CASES[case].examples(SIZE)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    method = rt.methods.dpsgd(noise_multiplier=1.0)
    batch = CASES[case].batch
    return rt.Run(network, optimizer, examples, method=method, batch_size=batch, rounds=10_000, delta=1e-5, seed=0)


def measured(worlds: dict[str, World], case: str, turns: int, rounds: int) -> list[str]:
    """The rows of one case; in turn, so that whatever else the machine does falls on all alike."""
    for one in worlds.values():
        one.make(training, case)
        one.go(3)
    print(f"{case}: ready", file=sys.stderr, flush=True)
    took: dict[str, list[Took]] = {name: [] for name in worlds}
    for _ in range(turns):
        for name, one in worlds.items():
            took[name].append(one.go(rounds))
    lines = []
    for name, found in took.items():
        ratios = [one.wall / other.wall for one, other in zip(found, took[FIRST], strict=True)]
        wall, used = (1e3 * statistics.median(getattr(one, part) for one in found) for part in ("wall", "together"))
        least = min(one.wall for one in found) / min(one.wall for one in took[FIRST])
        ratio = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        lines.append(f"| {case} | {name} | {wall:.1f} | {used:.1f} | {ratio} | {least:.2f} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ranks", description=__doc__)
    parser.add_argument("--cases", default="cifar256,cifar1024")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    command = shlex.join(["python", "-m", "benchmarks.ranks", *sys.argv[1:]])
    lines = ["# Two ranks beside two threads", "", made_by({"command": command, **about_this_machine().to_json()}), ""]
    lines += [
        f"A round of DP-SGD: one process of 2 threads, 2 ranks of 1 thread over loopback. {asked.turns} turns of "
        f"{asked.rounds} rounds each, one after the other; goal: at most {GOAL}. The second row of 2 threads is the "
        "noise of the measurement.", "",
        "| case | | ms, median | processor ms, median | to 2 threads, median of turns | least to least |",
        "|---|---|---|---|---|---|",
    ]  # fmt: skip
    with ExitStack() as stack:
        worlds = {
            name: stack.enter_context(world(ranks, threads))
            for name, ranks, threads in ((FIRST, 1, 2), ("2 ranks", 2, 1), (f"{FIRST} again", 1, 2))
        }
        for case in asked.cases.split(","):
            lines += measured(worlds, case, asked.turns, asked.rounds)
    print("\n".join(lines))
    if asked.out is not None:
        (asked.out / "ranks.md").write_text("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
