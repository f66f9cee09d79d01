"""Sixteen shadow MLPs trained together against one after another in a plain torch loop, interleaved in one run.

python -m benchmarks.shadows [--repeats 5]
"""

from __future__ import annotations

import argparse
import json
import statistics
import time

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from reticent.attacks.batched import ShadowRecipe, train_together

MODELS, RECORDS, STEPS, BATCH = 16, 1000, 200, 100


def nets() -> list[nn.Module]:
    return [nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)) for _ in range(MODELS)]


def one_by_one(x: torch.Tensor, y: torch.Tensor, members: list[np.ndarray]) -> None:
    for net, rows in zip(nets(), members, strict=True):
        optimizer, own = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9), torch.from_numpy(rows)
        for _ in range(STEPS):
            index = own[torch.randint(len(own), (BATCH,))]
            optimizer.zero_grad()
            cross_entropy(net(x[index]), y[index]).backward()
            optimizer.step()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    torch.manual_seed(0)
    x, y = torch.randn(RECORDS, 64), torch.randint(0, 10, (RECORDS,))
    members = [np.random.default_rng(i).permutation(RECORDS)[: RECORDS // 2] for i in range(MODELS)]
    recipe = ShadowRecipe(steps=STEPS, batch_size=BATCH, learning_rate=0.1, momentum=0.9)
    times: dict[str, list[float]] = {"together": [], "one by one": []}
    for _ in range(repeats):
        start = time.perf_counter()
        train_together(nets(), x, y, members, recipe, list(range(MODELS)))
        middle = time.perf_counter()
        one_by_one(x, y, members)
        times["together"].append(middle - start)
        times["one by one"].append(time.perf_counter() - middle)
    median = {name: statistics.median(found) for name, found in times.items()}
    print(json.dumps({"seconds": median, "times faster": round(median["one by one"] / median["together"], 2)}))


if __name__ == "__main__":
    main()
