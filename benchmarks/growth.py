"""Growth curves: time and memory of a private step against batch, parameters, length and number of examples."""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from benchmarks.models import CASES, Case, Transformer
from benchmarks.peers import Step, ours, sgd

CURVES: dict[str, list[int]] = {
    "batch": [64, 128, 256, 512, 1024, 2048, 4096],
    "parameters": [10_000, 100_000, 1_000_000, 10_000_000],
    "length": [16, 32, 64, 128, 256],
    "examples": [10_000, 100_000, 1_000_000, 10_000_000],
}


def case_of(curve: str, value: int) -> Case:
    """Give the case at one point of a curve."""
    match curve:
        case "batch":
            mnist = CASES["mnist512"]
            return Case(mnist.build, mnist.shape, value)
        case "parameters":
            width = max(1, round((value / 2) ** 0.5))
            layers = [nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)]
            return Case(lambda: nn.Sequential(*layers, nn.ReLU(), nn.Linear(width, 10)), (64,), 256)
        case "length":
            return Case(lambda: Transformer(1000, value, 128, 2), (value,), 16, classes=2, words=1000)
    raise ValueError(curve)


def drawing(examples: int) -> Step:
    """Draw a batch of about 256 from so many examples."""
    import numpy as np

    from reticent.inside.draws import Poisson
    from reticent.inside.settings import RoundSettings

    rng, settings = np.random.default_rng(0), RoundSettings(examples, 256, 1.0, 1.0)
    return lambda: Poisson().draw(settings, settings.size, rng, {})


def measure(curve: str, value: int, who: str) -> dict[str, float]:
    """Time one point in this process."""
    build: dict[str, Callable[[Case], Step]] = {"ours": ours, "sgd": sgd}
    step = drawing(value) if curve == "examples" else build[who](case_of(curve, value))
    step()
    step()
    times = []
    while len(times) < 5 or (sum(times) < 1.0 and len(times) < 50):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return {"ms": 1e3 * statistics.median(times), "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def grow(curves: list[str], threads: int, out: Path, made_by: str) -> None:
    """Measure every point in a process of its own and write `growth.md`."""
    lines = [
        "# Growth",
        "",
        made_by,
        "",
        "| curve | value | ours ms | ours MB | sgd ms | sgd MB |",
        "|---|---|---|---|---|---|",
    ]
    for curve in curves:
        for value in CURVES[curve]:
            found: dict[str, dict[str, float]] = {}
            for who in ("ours",) if curve == "examples" else ("ours", "sgd"):
                command = [sys.executable, "-m", "benchmarks.growth", curve, str(value), who, str(threads)]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode == 0:
                    found[who] = json.loads(done.stdout)
            cells = " | ".join(_cells(found.get(who)) for who in ("ours", "sgd"))
            lines.append(f"| {curve} | {value} | {cells} |")
            print(lines[-1], flush=True)
    (out / "growth.md").write_text("\n".join(lines) + "\n")


def _cells(found: dict[str, float] | None) -> str:
    return "- | -" if found is None else f"{found['ms']:.2f} | {found['peak']:.0f}"


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[4]))
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]), sys.argv[3])))
