"""What shadow models cost: many small ones in one loop, and those of a private run, each beside plain training.

`python -m benchmarks.shadows` prints how many times faster sixteen MLPs are together than one after another, and how
many times as long as a plain training a shadow of a private run takes (the papers' network for MNIST, on made-up
images): all of it, from the cards that it is dealt to its answers. Turns of each in turn.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from benchmarks.growth import CLOCKS
from reticent.attacks.batched import ShadowRecipe, train_together
from reticent.attacks.game import Game
from reticent.attacks.games import deal_cards
from reticent.data import Dataset, Examples
from reticent.experiments import Recipe
from reticent.experiments.attacking import train_shadow
from reticent.experiments.repeat import Repeatable

MODELS, RECORDS, STEPS, BATCH = 16, 1000, 200, 100
PRIVATE = Recipe(data="mnist", model="cnn", method="dpsgd", epsilon=3.0, batch_size=512, epochs=4, lr=0.5, seed=0)
IMAGES = 30_000
GAME = Game(records=1000, models=64)

Clock = Callable[[], float]


@contextmanager
def timed(now: Clock, found: list[float]) -> Iterator[None]:
    start = now()
    yield
    found.append(now() - start)


def nets() -> list[nn.Module]:
    return [nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)) for _ in range(MODELS)]


def plainly(net: nn.Module, x: torch.Tensor, y: torch.Tensor, steps: int, batch: int) -> None:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for _ in range(steps):
        index = torch.randint(len(x), (batch,))
        optimizer.zero_grad()
        cross_entropy(net(x[index]), y[index]).backward()
        optimizer.step()


def small(now: Clock, turns: int) -> dict[str, object]:
    """Plain MLPs in one vectorised loop, and one by one."""
    x, y = torch.randn(RECORDS, 64), torch.randint(0, 10, (RECORDS,))
    members = [np.random.default_rng(i).permutation(RECORDS)[: RECORDS // 2] for i in range(MODELS)]
    recipe = ShadowRecipe(steps=STEPS, batch_size=BATCH, learning_rate=0.1, momentum=0.9)
    together: list[float] = []
    apart: list[float] = []
    for _ in range(turns):
        with timed(now, together):
            train_together(nets(), x, y, members, recipe, list(range(MODELS)))
        with timed(now, apart):
            for net, rows in zip(nets(), members, strict=True):
                plainly(net, x[rows], y[rows], STEPS, BATCH)
    return {"what": f"{MODELS} MLPs", "times faster": round(statistics.median(apart) / statistics.median(together), 2)}


def private(now: Clock, turns: int) -> dict[str, object]:
    """Shadows of a private run as an attack trains them, and plain trainings with as many rounds of as many images."""
    recipe = PRIVATE.filled()
    made = Examples(torch.rand(2 * IMAGES, 1, 28, 28), torch.randint(0, 10, (2 * IMAGES,)))
    dataset = Dataset("images", made.take(np.arange(IMAGES)), made.take(np.arange(IMAGES, 2 * IMAGES)), 10, "")
    again = Repeatable(recipe, plain=False, dataset=dataset, aside=None)
    ours: list[float] = []
    theirs: list[float] = []
    for number in range(turns):
        with timed(now, ours):
            train_shadow(again, GAME, number)
        own, net = deal_cards(GAME, dataset).train(number), again.network()
        with timed(now, theirs):
            plainly(net, own.x, own.y, round(recipe.epochs * len(own) / 512), 512)
    ratio = statistics.median(ours) / statistics.median(theirs)
    said = {"seconds": round(statistics.median(ours), 2), "plain": round(statistics.median(theirs), 2)}
    return {"what": "a shadow of DP-SGD", **said, "times a plain training": round(ratio, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--clock", choices=CLOCKS, default="cpu")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    for measure in (small, private):
        print(json.dumps(measure(CLOCKS[asked.clock], asked.turns)), flush=True)


if __name__ == "__main__":
    main()
