"""What a round of DPSUR and DPIS costs, as a ratio to DP-SGD steps and forward passes measured in the same run.

python -m benchmarks.methods [--repeats 15]
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable

import torch
from torch import nn

import reticent as rt
from reticent import models

SIZE, BATCH, VALIDATION = 6_000, 512, 256


def make(method: rt.methods.Method, x: torch.Tensor, y: torch.Tensor) -> rt.Run:
    net = models.build("cnn", inputs=(1, 28, 28), classes=10)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    budget = rt.Budget(8.0, 1e-5)
    return rt.Run(net, optimizer, (x, y), method=method, batch_size=BATCH, epochs=200, budget=budget, seed=0)


def two_forwards(net: nn.Module, x: torch.Tensor) -> Callable[[], None]:
    def run() -> None:
        rows = x[torch.randint(len(x), (VALIDATION,))]
        with torch.no_grad():
            net(rows)
            net(rows)

    return run


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=15)
    repeats = parser.parse_args().repeats
    torch.manual_seed(0)
    x, y = torch.rand(SIZE, 1, 28, 28), torch.randint(0, 10, (SIZE,))
    plain = make(rt.methods.dpsgd(noise_multiplier=4.0, max_grad_norm=0.1), x, y)
    dpsur = make(rt.methods.dpsur(noise_multiplier=4.0, validation_batch_size=VALIDATION), x, y)
    dpis = make(rt.methods.dpis(spread=5.0), x, y)
    for _ in range(3 * SIZE // BATCH):  # from the third epoch on every norm is known
        dpis.step()
    work = {"dpsgd": plain.step, "dpsur": dpsur.step, "dpis": dpis.step, "two forwards": two_forwards(plain.model, x)}
    times: dict[str, list[float]] = {name: [] for name in work}
    for repeat in range(repeats):
        names = list(work)
        for name in names[repeat % len(names) :] + names[: repeat % len(names)]:
            start = time.perf_counter()
            work[name]()
            times[name].append(time.perf_counter() - start)
    median = {name: statistics.median(found) for name, found in times.items()}
    answer = {
        "milliseconds": {name: round(1000 * value, 2) for name, value in median.items()},
        "dpsur / (step + two forwards)": round(median["dpsur"] / (median["dpsgd"] + median["two forwards"]), 3),
        "dpis / dpsgd step (k = 5)": round(median["dpis"] / median["dpsgd"], 3),
    }
    print(json.dumps(answer, indent=2))


if __name__ == "__main__":
    main()
