"""`python -m benchmarks.growth`: time and memory against plain SGD as batch, parameters, length and rounds grow.

Processor time by default, so that a busy machine counts little.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shlex
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from unittest import mock

import torch
from torch import nn

from benchmarks.ledger import STEP
from benchmarks.models import CASES, Case, Transformer
from benchmarks.peers import Step, ours_whole_run, sgd
from benchmarks.tables import made_by
from reticent.accounting import Entry, Ledger, calibrate, price
from reticent.experiments.record import about_this_machine
from reticent.inside.draws import Poisson
from reticent.inside.settings import RoundSettings

CURVES: dict[str, list[int]] = {
    "batch": [64, 256, 1024, 4096],
    "parameters": [10_000, 100_000, 1_000_000, 10_000_000, 100_000_000],
    "length": [16, 64, 256, 1024, 2048],
    "examples": [10_000, 1_000_000, 100_000_000],
    "rounds": [1_000, 10_000, 100_000, 1_000_000],
}
QUICK: dict[str, list[int]] = {
    "batch": [64, 1024],
    "parameters": [100_000, 10_000_000],
    "length": [128, 2048],
    "examples": [10_000, 100_000_000],
    "rounds": [1_000, 100_000],
}
"""The same in a minute or two of one core."""
ABOUT = (
    "Ours is a whole round of `rt.Run`, with its ledger in memory. Every figure comes from a process of its own, "
    "forked when all is loaded; SGD and ours take turns. Memory is the peak in steps after the first two, above "
    "what the process began with, without pages of libraries. A draw is of about 256 examples, of which no data are "
    "needed. A line of the ledger is timed over the last thousand rounds, without waiting for the disk; `price` is "
    "the epsilon of all rounds, `noise` the search for the least noise of so many."
)
SIDES: dict[str, Callable[[Case], Step]] = {"ours": ours_whole_run, "sgd": sgd}
CLOCKS = {"cpu": time.process_time, "wall": time.perf_counter}
WARMING = 2
"""Steps that come first and do not count; later ones come one by one."""
LAST = 1000
"""A line of the ledger is timed over the last ones of so many."""


def case_of(curve: str, value: int) -> Case:
    """Give the case at one point of a curve."""
    match curve:
        case "batch":
            mnist = CASES["mnist512"]
            return Case(mnist.build, mnist.shape, value)
        case "parameters":
            width = max(1, round((value / 2) ** 0.5))
            return Case(lambda: _wide(width), (64,), 256)
        case "length":
            return Case(lambda: Transformer(1000, value, 128, 2), (value,), 4, classes=2, words=1000)
    raise ValueError(curve)


def _wide(width: int) -> nn.Module:
    """Two layers of width x width, and what joins them."""
    layers = [nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, 10))


# -- in a process of its own -----------------------------------------------------------------------------------------


def memory(kind: str = "VmRSS") -> float:
    """The memory that this process has, or with `VmHWM` has had at most, in MB, without the files that it maps.

    Pages of libraries count for none: a forked process has none of them at first, and gets them as it runs.
    """
    said = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return (int(said[kind].split()[0]) - int(said["RssFile"].split()[0])) / 1024


def steps(pipe: Connection, curve: str, value: int, side: str, clock: str) -> None:
    """Take as many steps as asked for, and tell how long each took and how much memory there was at most."""
    before, now = memory(), CLOCKS[clock]
    torch.manual_seed(0)
    step = SIDES[side](case_of(curve, value))
    while count := pipe.recv():
        times = []
        for _ in range(count):
            start = now()
            step()
            times.append(now() - start)
        pipe.send((times, memory("VmHWM") - before))
        if count == WARMING:
            Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew, for steps alone


def draws(pipe: Connection, examples: int, clock: str) -> None:
    """Draw a batch of about 256 from so many examples."""
    import numpy as np

    before, now = memory(), CLOCKS[clock]
    rng, settings, times = np.random.default_rng(0), RoundSettings(examples, 256, 1.0, 1.0), []
    for _ in range(50):
        start = now()
        Poisson().draw(settings, settings.size, rng, {})
        times.append(now() - start)
    pipe.send({"a draw, ms": 1e3 * statistics.median(times), "MB": memory("VmHWM") - before})


def rounds(pipe: Connection, count: int, clock: str) -> None:
    """Write so many rounds, read them again, price them, and find the noise for them; the disk itself is left out."""
    before, now, found = memory(), CLOCKS[clock], {}
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(os, "fdatasync", return_value=None):
        path = Path(folder) / "ledger.jsonl"
        ledger = Ledger(path)
        for number in range(count):
            if number == count - LAST:
                start = now()
            ledger.record(Entry(number, 0, STEP, "35e61cab493be490779d066358513f79"))
        found["a line, ms"] = 1e3 * (now() - start) / LAST
        found["MB"] = memory("VmHWM") - before
        del ledger
        found["open again, ms"] = 1e3 * _taken(now, lambda: Ledger(path))
    found["price, ms"] = 1e3 * _taken(now, lambda: price({STEP: count}, 1e-5))
    found["noise, ms"] = 1e3 * _taken(now, lambda: calibrate.noise_multiplier(3.0, 1e-5, 0.001, count))
    pipe.send(found)


def _taken(now: Callable[[], float], act: Callable[[], object]) -> float:
    start = now()
    act()
    return now() - start


# -- who asks --------------------------------------------------------------------------------------------------------


class Process:
    """A forked process and a pipe to it."""

    def __init__(self, act: Callable[..., None], *args: object):
        fork = multiprocessing.get_context("fork")
        self.pipe, there = fork.Pipe()
        self.process = fork.Process(target=act, args=(there, *args))
        self.process.start()
        there.close()

    def answer(self) -> object:
        """What it says; None if it ended without a word."""
        try:
            return self.pipe.recv()
        except EOFError:
            return None


def against_sgd(curve: str, value: int, clock: str, seconds: float) -> dict[str, float]:
    """One point: both sides in turn, until each has had so many seconds."""
    sides = {side: Process(steps, curve, value, side, clock) for side in SIDES}
    times: dict[str, list[float]] = {side: [] for side in sides}
    most: dict[str, float] = {}

    def turn(count: int, *, kept: bool = True) -> bool:
        for side, one in sides.items():
            one.pipe.send(count)
            if (found := one.answer()) is None:
                return False
            taken, most[side] = found  # type: ignore[misc]
            times[side] += taken if kept else []
        return True

    good = turn(WARMING, kept=False)
    while good and (len(times["sgd"]) < 3 or (sum(times["sgd"]) < seconds and len(times["sgd"]) < 200)):
        good = turn(1)
    for one in sides.values():
        if one.process.is_alive():
            one.pipe.send(0)
        one.process.join()
    if not good:
        return {}
    middle = {side: 1e3 * statistics.median(taken) for side, taken in times.items()}
    return {
        "ours, ms": middle["ours"],
        "SGD, ms": middle["sgd"],
        "ratio": middle["ours"] / middle["sgd"],
        "ours, MB": most["ours"],
        "SGD, MB": most["sgd"],
    }


def alone(act: Callable[..., None], value: int, clock: str) -> dict[str, float]:
    """One point of a curve that SGD has no part in."""
    one = Process(act, value, clock)
    found = one.answer()
    one.process.join()
    return found if isinstance(found, dict) else {}


def measured(curve: str, value: int, clock: str, seconds: float) -> dict[str, float]:
    """One row."""
    match curve:
        case "examples":
            return alone(draws, value, clock)
        case "rounds":
            return alone(rounds, value, clock)
    return against_sgd(curve, value, clock, seconds)


def lines(curve: str, values: list[int], clock: str, seconds: float) -> Iterator[str]:
    """A curve as a table."""
    begun = False
    for value in values:
        found = measured(curve, value, clock, seconds)
        if found and not begun:
            yield "\n| " + " | ".join([curve, *found]) + " |"
            yield "|---" * (1 + len(found)) + "|"
            begun = True
        yield f"| {value:,} | " + (" | ".join(f"{number:,.2f}" for number in found.values()) or "failed") + " |"


def grow(curves: dict[str, list[int]], out: Path, about: str, *, threads: int, clock: str, seconds: float) -> None:
    """Measure and write `growth.md`."""
    torch.set_num_threads(threads)
    for side in SIDES.values():  # what is loaded on the way counts for none of them
        side(Case(lambda: nn.Linear(2, 2), (2,), 4, classes=2))()
    kind = {"cpu": "processor time", "wall": "time by the clock"}[clock]
    text = ["# Growth", "", about, "", f"Medians of {kind}, threads: {threads}. {ABOUT}"]
    for curve, values in curves.items():
        for line in lines(curve, values, clock, seconds):
            print(line, flush=True)
            text.append(line)
    (out / "growth.md").write_text("\n".join(text) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--curves", default=",".join(CURVES))
    parser.add_argument("--quick", action="store_true", help="the ends of each curve, in a minute or two")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--clock", choices=CLOCKS, default="cpu")
    parser.add_argument("--seconds", type=float, default=None, help="of each side at each point, about")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    asked = parser.parse_args()
    points = QUICK if asked.quick else CURVES
    command = shlex.join(["python", "-m", "benchmarks.growth", *sys.argv[1:]])
    about = made_by({"command": command, **about_this_machine().to_json()})
    seconds = asked.seconds if asked.seconds is not None else 0.5 if asked.quick else 2.0
    wanted = {curve: points[curve] for curve in asked.curves.split(",")}
    grow(wanted, asked.out, about, threads=asked.threads, clock=asked.clock, seconds=seconds)


if __name__ == "__main__":
    main()
