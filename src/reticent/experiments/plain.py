"""Plain training: the same network on the same data without any privacy, the line that private methods are held to."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.optim import Optimizer

from reticent.accounting import Guarantee
from reticent.checkpoint import Folder
from reticent.data import Dataset, Examples
from reticent.evaluating import accuracy
from reticent.experiments.normalising import normalise
from reticent.experiments.parts import model_of
from reticent.experiments.recipe import Recipe
from reticent.experiments.settling import ruled, settled
from reticent.experiments.training import examples, finish, finished
from reticent.methods.planning import default_delta
from reticent.optimizers import make_optimizer
from reticent.results import PlainSettings, Result
from reticent.trained import Trained

BATCH_SIZE = 64
RATES = (0.001, 0.004, 0.016, 0.064)
"""Learning rates of Adam to choose from: those made for clipped, noisy gradients would ruin plain training."""

Tell = Callable[[int, int], None]


def train_plain(recipe: Recipe, out: Path, *, tell: Tell | None = None) -> Result:
    """Train the network of a recipe for its epochs without privacy; the answer has the shape of `train`'s.

    Where the recipe says optimizer, step and batch size, these are taken (with `lr_schedule="constant"` the step does
    not fall). Otherwise it is Adam, with the learning rate that does best on a tenth of the training examples after a
    quarter of the epochs. After a crash it goes on from its last checkpoint.
    """
    start = time.perf_counter()
    said = recipe.filled()
    dataset = examples(said)
    whole = None not in (recipe.optimizer, recipe.lr, recipe.batch_size)
    recipe = replace(settled(said, dataset), optimizer=recipe.optimizer if whole else None)
    if (done := finished(out, recipe, resume=True)) is not None:
        return done
    trained, lr = learn(recipe, dataset, Folder(out, resume=True, seconds=30.0), tell)
    schedule = "constant" if _steady(recipe) else "cosine to zero"
    optimizer = PlainSettings(name=recipe.optimizer or "adam", lr=lr, batch_size=_batch_size(recipe), schedule=schedule)
    by_rule = ruled(said, recipe)
    return finish(recipe, dataset, trained, out, start, noise_multiplier=0.0, by_rule=by_rule, optimizer=optimizer)


def learn(
    recipe: Recipe, dataset: Dataset, folder: Folder | None = None, tell: Tell | None = None
) -> tuple[Trained, float]:
    """The trained network and its learning rate, from where the folder's checkpoint stands, if there is one."""
    epochs, seed = max(1, math.ceil(recipe.epochs or 1)), recipe.seed or 0
    model = _normalised(recipe, dataset)
    optimizer = _optimizer(recipe, model)
    stored = (folder.read() if folder is not None else None) or {"epoch": 0, "lr": None}
    lr: float = stored["lr"] or _said_rate(recipe) or _best_rate(recipe, dataset, math.ceil(epochs / 4), seed)
    if stored["epoch"]:
        model.load_state_dict(stored["model"])
        optimizer.load_state_dict(stored["optimizer"])
    steps = math.ceil(len(dataset.train) / _batch_size(recipe))
    for epoch in range(stored["epoch"], epochs):
        _epoch(model, optimizer, dataset.train, (epoch, epochs), replace(recipe, lr=lr, seed=seed))
        if folder is not None and folder.due():
            now = {"model": dict(model.state_dict()), "optimizer": optimizer.state_dict()}
            folder.write({"epoch": epoch + 1, "lr": lr, **now})
        if tell is not None:
            tell((epoch + 1) * steps, epochs * steps)
    return Trained(model, _nothing(recipe, dataset), epochs * steps, epochs * steps, {"recipe": recipe.to_json()}), lr


def _normalised(recipe: Recipe, dataset: Dataset) -> nn.Module:
    """The recipe's network with its normalising layers filled as a private run's are: no accuracy lost, none gained.

    What a preset releases for a share of the budget is for runs that have one.
    """
    model = model_of(recipe, dataset)
    normalise(model, dataset.train, recipe, None)
    return model


def _nothing(recipe: Recipe, dataset: Dataset) -> Guarantee:
    delta = recipe.delta if recipe.delta is not None else default_delta(recipe.size or len(dataset.train))
    return Guarantee("none", math.inf, delta, why="trained without any privacy, as the line to be held to")


def _best_rate(recipe: Recipe, dataset: Dataset, epochs: int, seed: int) -> float:
    """The learning rate that does best on a tenth of the training examples, the others being learned from."""
    order = torch.randperm(len(dataset.train), generator=torch.Generator().manual_seed(seed))
    judges, learners = (dataset.train.take(part) for part in order.tensor_split([len(order) // 10]))

    def reached(lr: float) -> float:
        model = _normalised(recipe, dataset)
        optimizer = _optimizer(recipe, model)
        for epoch in range(epochs):
            _epoch(model, optimizer, learners, (epoch, epochs), replace(recipe, lr=lr, seed=seed))
        return accuracy(model, *judges)

    return max(RATES, key=reached)


def _optimizer(recipe: Recipe, model: nn.Module) -> Optimizer:
    """What the recipe names, if its step and batch size are for it; its step is set in every round."""
    return make_optimizer(recipe.optimizer or "adam", model, 1.0, recipe.momentum)


def _said_rate(recipe: Recipe) -> float | None:
    return recipe.lr if recipe.optimizer is not None else None


def _steady(recipe: Recipe) -> bool:
    return recipe.optimizer is not None and recipe.lr_schedule == "constant"


def _batch_size(recipe: Recipe) -> int:
    return int(recipe.batch_size or BATCH_SIZE) if recipe.optimizer is not None else BATCH_SIZE


def _epoch(model: nn.Module, optimizer: Optimizer, learners: Examples, place: tuple[int, int], recipe: Recipe) -> None:
    """Every example once, in the order and with the dropout that seed and epoch give."""
    epoch, epochs = place
    torch.manual_seed((recipe.seed or 0) * 1_000_003 + epoch)
    model.train()
    parts = torch.split(torch.randperm(len(learners)), _batch_size(recipe))
    for number, index in enumerate(parts):
        done = (epoch + number / len(parts)) / epochs
        for group in optimizer.param_groups:
            share = 1.0 if _steady(recipe) else (1 + math.cos(math.pi * done)) / 2
            group["lr"] = (recipe.lr or 0.0) * share
        x, y = learners.take(index)
        optimizer.zero_grad()
        torch.autograd.backward(cross_entropy(model(x), y))
        optimizer.step()
