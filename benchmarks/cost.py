"""The cost model of docs/scaling.md: fitted here on one process, and checked on points it has not seen.

python -m benchmarks.cost [--out benchmarks/results]

A step on R ranks with P trained parameters and an expected batch of B takes about

    begin + B/R (row + work P) + noise P/R + move P + 2 delay ceil(log2 R) + 2 (R - 1)/R 4 P / bandwidth    seconds

The first terms are fitted to processor times of single steps; what is sent is a formula.
"""

from __future__ import annotations

import argparse
import math
import shlex
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

import reticent as rt
from benchmarks.tables import made_by
from reticent.experiments.record import about_this_machine
from reticent.inside import Randomness
from reticent.inside.lattice import Lattice

WIDTHS = (100, 400, 1200)
BATCHES = (64, 256, 1024)
HELD_OUT = ((200, 512), (800, 128), (800, 1024))
INPUTS = 64


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
    delay: float = 5e-5
    """Of one message."""

    def step(self, parameters: float, batch: float, ranks: int = 1) -> float:
        """Seconds of a step.

        >>> Machine(0.0, 0.0, 1e-9, 0.0, 0.0).step(1e6, 100)
        0.1
        """
        computed = batch / ranks * (self.row + self.work * parameters)
        made = self.noise * parameters / ranks + self.move * parameters
        hops = 2 * self.delay * math.ceil(math.log2(ranks)) if ranks > 1 else 0.0
        return self.begin + computed + made + hops + sent(parameters, ranks) / self.bandwidth


def sent(parameters: float, ranks: int) -> float:
    """Bytes that a rank sends in a step: a reduce-scatter of the sums, then an all-gather of what was released.

    >>> sent(1e6, 1), sent(1e6, 2), sent(1e6, 64)
    (0.0, 4000000.0, 7875000.0)
    """
    return 2 * (ranks - 1) / ranks * 4 * parameters


def held(parameters: float, trained: float, batch: float, row_bytes: float, ranks: int = 1) -> float:
    """Bytes that a rank holds beside activations: the model; of what is trained the sum, float64 noise and a copy."""
    return 4 * parameters + trained * (4 + 4 + 4) + 8 * trained / ranks + 2 * batch / ranks * row_bytes


def parameters_of(width: int) -> int:
    return INPUTS * width + width + width * width + width + width * 10 + 10


def measured(width: int, batch: int) -> float:
    """Seconds of a step of a run, by processor time: the median of some."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(INPUTS, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))
    examples = torch.randn(20_000, INPUTS), torch.arange(20_000) % 10
    method = rt.methods.dpsgd(noise_multiplier=1.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    run = rt.Run(model, optimizer, examples, method=method, batch_size=batch, rounds=200, delta=1e-5, seed=0)
    times = []
    for number in range(60):
        start = time.process_time()
        run.step()
        times.append(time.process_time() - start)
        if number > 6 and sum(times) > 1.0:
            break
    return statistics.median(times[2:])


def noise_alone() -> float:
    """Seconds of a number of noise, as the door makes it."""
    total, times = torch.zeros(2**20), []
    randomness = Randomness.from_seed(0)
    for number in range(10):
        start = time.process_time()
        Lattice.of(sensitivity=1.0, std=1.0, size=len(total)).noised(total, randomness.at(number, "noise", 0))
        times.append(time.process_time() - start)
    return statistics.median(times) / len(total)


def fitted(points: dict[tuple[int, int], float], noise: float) -> Machine:
    """The constants that fit the points best, each point by its share; none is below zero."""
    from scipy.optimize import nnls

    rows = np.array([[1.0, batch, batch * parameters_of(width), parameters_of(width)] for width, batch in points])
    times = np.array([seconds - noise * parameters_of(width) for (width, _), seconds in points.items()])
    whole = np.array(list(points.values()))
    scale = np.array([1e-3, 1e-6, 1e-10, 1e-9])
    found = nnls(rows * scale / whole[:, None], times / whole)[0] * scale
    return Machine(begin=found[0], row=found[1], work=found[2], noise=noise, move=found[3])


GPU = Machine(begin=5e-3, row=1e-6, work=6 / 4e13, noise=2e-11, move=2e-11, bandwidth=2e10, delay=2e-5)
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


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cost")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    places = [(width, batch) for width in WIDTHS for batch in BATCHES]
    points = {place: measured(*place) for place in (*places, *HELD_OUT)}
    here = fitted({place: points[place] for place in places}, noise_alone())
    command = shlex.join(["python", "-m", "benchmarks.cost", *sys.argv[1:]])
    lines = ["# The cost model", "", made_by({"command": command, **about_this_machine().to_json()}), ""]
    lines += ["One process of one thread, processor time.", "", "| constant | seconds |", "|---|---|"]
    lines += [f"| {name} | {value:.3g} |" for name, value in asdict(here).items() if name not in ("bandwidth", "delay")]
    lines += ["", "| parameters | batch | measured ms | model ms | model to measured |  |", "|---|---|---|---|---|---|"]
    for (width, batch), seconds in points.items():
        model, seen = here.step(parameters_of(width), batch), "not fitted" if (width, batch) in HELD_OUT else ""
        cells = f"{parameters_of(width)} | {batch} | {1e3 * seconds:.1f} | {1e3 * model:.1f}"
        lines.append(f"| {cells} | {model / seconds:.2f} | {seen} |")
    lines += ["", "## What it predicts", "", *predictions(here), ""]
    print("\n".join(lines))
    if asked.out is not None:
        (asked.out / "cost.md").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
