"""`python -m benchmarks.by_person`: what privacy by person costs, in accuracy on digits and in time against plain SGD.

The persons are made up: each digit is given to one of 325, who have 1 to 29 of them.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

import reticent as rt
from reticent.data import load
from reticent.gradients import norms_and_sum
from reticent.gradients.grouped import Grouped, GroupedLoss, flattened
from reticent.losses import cross_entropy
from reticent.models import build

SEEDS, TURNS, ROWS = 5, 25, 256


def made_up_persons(rows: int) -> np.ndarray:
    """Whose each row is: persons with a geometric number of rows, about four."""
    rng = np.random.default_rng(0)
    sizes = rng.geometric(0.25, rows)
    return rng.permutation(np.repeat(np.arange(rows), sizes)[:rows])


def accuracy(**options: object) -> str:
    """The accuracy of a linear model on the test digits, over some seeds."""
    digits, found = load("digits"), []
    for seed in range(SEEDS):
        torch.manual_seed(seed)
        model = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
        trained = rt.fit(model, (digits.train.x, digits.train.y), epochs=20, lr=2.0, seed=seed, **options)
        found.append(100 * trained.evaluate(*digits.test))
    return f"{statistics.mean(found):.1f} ± {statistics.stdev(found):.1f} %"


def utility() -> None:
    """One table: the same budget by row and by person."""
    whose = made_up_persons(len(load("digits").train))
    print("| epsilon | by row | by person | by person, most_rows=1 |\n|---|---|---|---|")
    for epsilon in (1.0, 3.0, 8.0):
        by_row = accuracy(epsilon=epsilon, batch_size=256)
        by_person = [accuracy(epsilon=epsilon, batch_size=64, groups=whose, most_rows=most) for most in (None, 1)]
        print(f"| {epsilon:g} | {by_row} | {' | '.join(by_person)} |", flush=True)


def medians(*steps: Callable[[], object]) -> list[float]:
    """The median time of each step, the steps taking turns."""
    times: list[list[float]] = [[] for _ in steps]
    for turn in range(TURNS + 3):
        for step, taken in zip(steps, times, strict=True):
            start = time.perf_counter()
            step()
            if turn >= 3:
                taken.append(time.perf_counter() - start)
    return [statistics.median(taken) for taken in times]


def speed() -> None:
    """Another: gradients of 256 rows, plain, bounded by row and by person."""
    makers: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
        "MLP 784-512-512-10": (lambda: mlp(784, 512, 512, 10), (784,)),
        "CNN of MNIST": (lambda: build("cnn", inputs=(1, 28, 28), classes=10, activation="tanh"), (1, 28, 28)),
    }
    print("| network | rows of a person | by row / SGD | by person / SGD |\n|---|---|---|---|")
    for name, (make, shape) in makers.items():
        for rows in (1, 4, 16):
            model, persons = make(), ROWS // rows
            pair = (torch.randn(persons, rows, *shape), torch.randint(10, (persons, rows)))
            people = Grouped(pair, torch.full((persons, rows), 1 / rows))
            times = medians(*steps(model, people))
            print(f"| {name} | {rows} | {times[1] / times[0]:.2f} | {times[2] / times[0]:.2f} |", flush=True)


def steps(model: nn.Module, people: Grouped) -> tuple[Callable[[], object], ...]:
    """A plain backward pass, and the sums of bounded gradients by row and by person."""
    alone, loss, parameters = flattened(people), GroupedLoss(cross_entropy), list(model.parameters())

    def weigh(norms: torch.Tensor) -> torch.Tensor:
        return (1 / norms).clamp(max=1)

    return (
        lambda: torch.autograd.grad(cross_entropy(model, alone).mean(), parameters),
        lambda: norms_and_sum(model, cross_entropy, alone, weigh),
        lambda: norms_and_sum(model, loss, people, weigh),
    )


def mlp(*widths: int) -> nn.Module:
    """A plain network of these widths."""
    layers = [part for a, b in itertools.pairwise(widths) for part in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(*layers[:-1])


if __name__ == "__main__":
    torch.set_num_threads(1)
    utility()
    print()
    speed()
