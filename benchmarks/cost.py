"""The cost model of docs/scaling.md: fitted here on 1, 2 and 4 processes, and checked on points it has not seen.

python -m benchmarks.cost [--out benchmarks/results] [--memory]

A step on R ranks with P trained parameters and an expected batch of B takes about

    begin + B/R (row + work P) + noise P/R + move P + delay ceil(log2 R) + 2 (R - 1)/R 4 P / bandwidth    seconds

All constants are fitted to processor times of steps, noise alone is measured by itself.
"""

from __future__ import annotations

import argparse
import math
import shlex
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

import reticent as rt
from benchmarks.tables import made_by
from benchmarks.worlds import Took, World, world
from reticent.experiments.record import about_this_machine
from reticent.inside import Randomness
from reticent.inside.lattice import Lattice

WIDTHS = (100, 400, 1200)
BATCHES = (128, 1024)
HELD_OUT = ((200, 512), (800, 256))
RANKS = (1, 2, 4)
LARGE = (4000, 16)
INPUTS, ROUNDS, RECORDS = 64, 5, 1e9

Place = tuple[int, int]
"""Width of the layers and batch."""
Spot = tuple[int, int, int]
"""The same with the number of ranks."""
Points = dict[Spot, float]


@dataclass(frozen=True)
class Machine:
    """What a machine can do; times in seconds."""

    begin: float
    """A round, whatever it does: ledger, checks, Python."""
    row: float
    """An example, whatever the model: fetched, its loss, its norm."""
    work: float
    """One example and one parameter: forward, backward, norm and weighted sum."""
    noise: float
    """A number of noise."""
    move: float
    """A parameter that is stepped, kept and gone back to."""
    bandwidth: float = 1e9
    """Bytes a second between ranks."""
    delay: float = 5e-4
    """Of all messages of a step between two ranks, however short."""

    def step(self, parameters: float, batch: float, ranks: int = 1) -> float:
        """Seconds of a step.

        >>> Machine(0.0, 0.0, 1e-9, 0.0, 0.0).step(1e6, 100)
        0.1
        """
        computed = batch / ranks * (self.row + self.work * parameters)
        made = self.noise * parameters / ranks + self.move * parameters
        return self.begin + computed + made + self.delay * hops(ranks) + sent(parameters, ranks) / self.bandwidth


def hops(ranks: int) -> int:
    """How often a message is passed on until all have it.

    >>> hops(1), hops(2), hops(64)
    (0, 1, 6)
    """
    return math.ceil(math.log2(ranks))


def sent(parameters: float, ranks: int) -> float:
    """Bytes that a rank sends in a step: a reduce-scatter of the sums, then an all-gather of what was released.

    >>> sent(1e6, 1), sent(1e6, 2), sent(1e6, 64)
    (0.0, 4000000.0, 7875000.0)
    """
    return 2 * (ranks - 1) / ranks * 4 * parameters


def held(parameters: float, trained: float, batch: float, row_bytes: float, ranks: int = 1) -> float:
    """Bytes that a rank holds beside activations: the model, and of what is trained as much as `--memory` has found."""
    return 4 * parameters + (31 if ranks == 1 else 37) * trained + 2 * batch / ranks * row_bytes


def parameters_of(width: int) -> int:
    return INPUTS * width + width + width * width + width + width * 10 + 10


def training(width: int, batch: int) -> rt.Run:
    """A run of three linear layers."""
    model = nn.Sequential(nn.Linear(INPUTS, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))
    examples = torch.randn(20_000, INPUTS), torch.arange(20_000) % 10
    method = rt.methods.dpsgd(noise_multiplier=1.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    return rt.Run(model, optimizer, examples, method=method, batch_size=batch, rounds=1000, delta=1e-5, seed=0)


def measured(worlds: dict[int, World], place: Place, turns: int) -> dict[int, list[Took]]:
    """What a step takes on so many ranks, all in turn."""
    for one in worlds.values():
        one.make(training, *place)
        one.go(2)
    took: dict[int, list[Took]] = {ranks: [] for ranks in worlds}
    for _ in range(turns):
        for ranks, one in worlds.items():
            took[ranks].append(one.go(ROUNDS))
    return took


def noise_alone() -> float:
    """Seconds of a number of noise, as the door makes it."""
    total, times = torch.zeros(2**20), []
    randomness = Randomness.from_seed(0)
    for number in range(10):
        start = time.process_time()
        Lattice.of(sensitivity=1.0, std=1.0, size=len(total)).noised(total, randomness.at(number, "noise", 0))
        times.append(time.process_time() - start)
    return statistics.median(times) / len(total)


def fitted(points: Points, noise: float) -> Machine:
    """The constants that fit the points best, each point by its share; none is below zero."""
    from scipy.optimize import nnls

    rows, rest, whole = [], [], []
    for (width, batch, ranks), seconds in points.items():
        size = parameters_of(width)
        rows.append([1.0, batch / ranks, batch / ranks * size, size, hops(ranks), sent(size, ranks)])
        rest.append(seconds - noise * size / ranks)
        whole.append(seconds)
    scale = np.array([1e-3, 1e-6, 1e-10, 1e-9, 1e-3, 1e-9])
    found = nnls(np.array(rows) * scale / np.array(whole)[:, None], np.array(rest) / whole)[0] * scale
    begin, row, work, move, delay, carry = found
    return Machine(begin, row, work, noise, move, delay=delay, bandwidth=1 / carry if carry else math.inf)


GPU = Machine(begin=5e-3, row=1e-6, work=6 / 4e13, noise=2e-11, move=2e-11, bandwidth=2e10, delay=5e-4)
"""Assumed, not measured: 4e13 operations a second of which each example and parameter takes six, noise and moves at the
speed of memory (about 1.5e12 bytes a second), 160 Gbit/s between ranks."""


def predictions(here: Machine) -> Iterator[str]:
    yield "| where | parameters | batch | ranks | seconds a step | sent by a rank a step | held by a rank |"
    yield "|---|---|---|---|---|---|---|"
    for name, machine, parameters, batch, ranks in (
        ("here", here, 1e6, 4096, 1),
        ("here", here, 1e6, 4096, 4),
        ("assumed GPU", GPU, 1e9, 4096, 1),
        ("assumed GPU", GPU, 1e9, 4096, 64),
        ("assumed GPU", GPU, 1e9, 65536, 64),
    ):
        bytes_sent, memory = sent(parameters, ranks), held(parameters, parameters, batch, 4096, ranks)
        seconds = f"{machine.step(parameters, batch, ranks):.3g}"
        sizes = f"{bytes_sent / 1e9:.2f} GB | {memory / 1e9:.2f} GB"
        yield f"| {name} | {parameters:.0e} | {batch} | {ranks} | {seconds} | {sizes} |"
    steps = RECORDS / 65536
    hours = steps * GPU.step(1e9, 65536, 64) / 3600
    yield ""
    yield (
        f"{RECORDS:.0e} records change nothing in a step. A pass over them at a batch of 65536 is {steps:.0f} steps, "
        f"{hours:.1f} hours on the 64 assumed GPUs."
    )


def told(here: Machine, took: dict[Spot, list[Took]]) -> Iterator[str]:
    """Every point beside what the model says of it."""
    yield "| ranks | parameters | batch | processor ms | model ms | model to measured | sent MB | model MB |  |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for (width, batch, ranks), found in sorted(took.items(), key=lambda one: (one[0][2], *one[0])):
        size, seconds = parameters_of(width), middle(found)
        model, seen = here.step(size, batch, ranks), "not fitted" if (width, batch) in HELD_OUT else ""
        cells = f"{ranks} | {size} | {batch} | {1e3 * seconds:.1f} | {1e3 * model:.1f} | {model / seconds:.2f}"
        yield f"| {cells} | {found[0].sent / 1e6:.2f} | {sent(size, ranks) / 1e6:.2f} | {seen} |"


def memory() -> Iterator[str]:
    """The most that a rank holds of a large model, beside what the formula says of it."""
    yield "| ranks | parameters | batch | most held MB | model MB |"
    yield "|---|---|---|---|---|"
    for ranks in RANKS[:2]:
        with world(ranks) as one:
            one.make(training, *LARGE)
            one.go(1)  # with checks that later rounds seldom have
            found, size = one.go(2).held, parameters_of(LARGE[0])
        model = held(size, size, LARGE[1], 4 * INPUTS + 8, ranks)
        yield f"| {ranks} | {size} | {LARGE[1]} | {found / 1e6:.0f} | {model / 1e6:.0f} |"


def middle(found: list[Took]) -> float:
    return statistics.median(one.busiest for one in found)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cost")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--memory", action="store_true", help="only print what is held of a large model")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    if asked.memory:
        print("\n".join(memory()))
        return
    places, took = [(width, batch) for width in WIDTHS for batch in BATCHES], dict[Spot, list[Took]]()
    with ExitStack() as stack:
        worlds = {ranks: stack.enter_context(world(ranks)) for ranks in RANKS}
        for place in (*places, *HELD_OUT):
            took |= {(*place, ranks): found for ranks, found in measured(worlds, place, asked.turns).items()}
            print(place, {ranks: f"{1e3 * middle(took[*place, ranks]):.1f} ms" for ranks in RANKS}, file=sys.stderr)
    here = fitted({at: middle(found) for at, found in took.items() if at[:2] not in HELD_OUT}, noise_alone())
    command = shlex.join(["python", "-m", "benchmarks.cost", *sys.argv[1:]])
    lines = ["# The cost model", "", made_by({"command": command, **about_this_machine().to_json()}), ""]
    lines += [
        "Processes of one thread over loopback; processor time of the one that worked most, medians. Waiting is not in "
        "it, so `delay` and `bandwidth` are what sending costs a processor here.", "",
        "| constant | |", "|---|---|",
    ]  # fmt: skip
    lines += [f"| {name} | {value:.3g} |" for name, value in asdict(here).items()]
    lines += ["", *told(here, took), "", "## What it predicts", "", *predictions(here), ""]
    print("\n".join(lines))
    if asked.out is not None:
        (asked.out / "cost.md").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
