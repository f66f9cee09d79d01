"""What grows with the data, and what does not: the draw, fetching ahead, and memory for a hundred million rows.

python -m benchmarks.scaling [--only draw,ahead,memory] [--out benchmarks/results]
"""

from __future__ import annotations

import argparse
import shlex
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

import reticent as rt
from benchmarks.tables import made_by
from reticent import data
from reticent.experiments.record import about_this_machine
from reticent.inside import Poisson, Randomness, RoundSettings, as_store

BATCH = 4096
SIZES = (10**5, 10**6, 10**7, 10**8, 10**9)
ROWS, WIDTH = 10**8, 4
ROUNDS, TURNS = 10, 3


def drawing() -> list[str]:
    """Time of a draw, in turn over all sizes; processor time, since the machine may be busy."""
    randomness, times = Randomness.from_seed(0), {size: list[float]() for size in SIZES}
    for number in range(60):
        for size in SIZES:
            settings = RoundSettings(size, BATCH, 1.0, 1.0)
            start = time.process_time()
            Poisson().draw(settings, size, randomness.stream(number, "draw", 0), {})
            times[size].append(time.process_time() - start)
    found = {size: 1e3 * statistics.median(times[size]) for size in SIZES}
    lines = [f"| {size:.0e} | {found[size]:.3f} | {found[size] / found[SIZES[0]]:.2f} |" for size in SIZES]
    return [
        f"A draw of about {BATCH}; goal: at most 3 times as long from 1e8 as from 1e5.", "",
        "| examples | ms | to 1e5 |", "|---|---|---|", *lines,
    ]  # fmt: skip


class Slow(Dataset[tuple[Tensor, Tensor]]):
    """A dataset that takes its time, as a disk or a network does."""

    def __init__(self, seconds: float):
        self.seconds, self.x = seconds, torch.randn(10_000, 64)

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, number: int) -> tuple[Tensor, Tensor]:
        return self.__getitems__([number])[0]

    def __getitems__(self, numbers: list[int]) -> list[tuple[Tensor, Tensor]]:
        time.sleep(self.seconds * len(numbers))
        return [(self.x[number], torch.tensor(number % 10)) for number in numbers]


def rounds(examples: object, width: int) -> Callable[[int], float]:
    """Something that does so many rounds and says how long one takes."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))
    settings = {"method": rt.methods.dpsgd(noise_multiplier=1.0), "batch_size": 256, "delta": 1e-5, "seed": 0}
    run = rt.Run(model, torch.optim.SGD(model.parameters(), lr=0.1), examples, rounds=1000, **settings)

    def go(count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            run.step()
        return (time.perf_counter() - start) / count

    return go


def loading(examples: Slow) -> Callable[[int], float]:
    """Something that fetches so many batches and says how long one takes."""
    store, index = as_store(examples), np.arange(256)

    def go(count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            store.take(index)
        return (time.perf_counter() - start) / count

    return go


def ahead() -> list[str]:
    """A loader that takes as long as the step, alone and ahead."""
    width, pair = 700, (torch.randn(10_000, 64), torch.arange(10_000) % 10)
    step = rounds(pair, width)
    step(3)
    alone = step(ROUNDS)
    lines = []
    for share in (0.5, 1.0, 2.0):
        slow = Slow(max(0.0, share * alone - loading(Slow(0.0))(ROUNDS)) / 256)
        plain, early = rounds(slow, width), rounds(data.ahead(slow), width)
        times: dict[str, list[float]] = {"plain": [], "early": [], "step": [], "loader": []}
        turns = {"plain": plain, "early": early, "step": step, "loader": loading(slow)}
        for _ in range(TURNS):  # in turn: what else the machine does falls on all alike
            for name, one in turns.items():
                one(2)  # what was fetched while the others had their turn is used up
                times[name].append(one(ROUNDS))
        found = {name: statistics.median(values) for name, values in times.items()}
        larger = max(found["step"], found["loader"])
        cells = " | ".join(f"{1e3 * found[name]:.1f}" for name in ("step", "loader", "plain", "early"))
        lines.append(f"| {cells} | {found['early'] / larger:.2f} |")
    return [
        "One worker fetches a Dataset ahead that waits for every record; goal: at most 1.2 of the larger of both.", "",
        "| step ms | loader ms | one after the other ms | ahead ms | ahead to the larger |", "|---|---|---|---|---|",
        *lines,
    ]  # fmt: skip


def memory() -> list[str]:
    """Train a few rounds on a hundred million rows that lie in a file, and see what memory that takes."""
    with tempfile.TemporaryDirectory() as folder:
        for name, shape, kind in (("x", (ROWS, WIDTH), np.float32), ("y", (ROWS,), np.int64)):
            np.lib.format.open_memmap(
                f"{folder}/{name}.npy", mode="w+", dtype=kind, shape=shape
            )  # sparse: no bytes yet
        before = anonymous()
        examples = data.ahead(data.mapped(f"{folder}/x.npy", f"{folder}/y.npy"), workers=2)
        rounds = 10
        rt.fit(
            nn.Linear(WIDTH, 2), examples, noise_multiplier=1.0, batch_size=BATCH, lr=0.1, epochs=rounds * BATCH / ROWS,
            seed=0,
        )  # fmt: skip
        grown = (anonymous() - before) / 2**20
    return [
        f"{rounds} rounds of about {BATCH} of {ROWS:.0e} memory-mapped rows, labels too, fetched ahead by two threads: "
        f"{grown:.0f} MB more than before. The arrays have {ROWS * (4 * WIDTH + 8) / 2**20:.0f} MB."
    ]


def anonymous() -> int:
    """Bytes of memory of this process that are in no file."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))


PARTS: dict[str, tuple[str, Callable[[], list[str]]]] = {
    "draw": ("The draw", drawing),
    "ahead": ("Fetching ahead", ahead),
    "memory": ("Memory", memory),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    command = shlex.join(["python", "-m", "benchmarks.scaling", *sys.argv[1:]])
    lines = ["# What grows with the data", "", made_by({"command": command, **about_this_machine().to_json()}), ""]
    for name in asked.only.split(","):
        title, part = PARTS[name]
        lines += [f"## {title}", "", *part(), ""]
        print("\n".join(lines[lines.index(f"## {title}") :]), flush=True)
    if asked.out is not None:
        (asked.out / "scaling.md").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
