"""What a run cannot work with, told before it begins."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

import torch
from torch.optim import LBFGS, SGD, Optimizer
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from reticent.accounting import Price
from reticent.errors import ModelError, PrivacyWarning, ReticentError, SettingError
from reticent.gradients import check
from reticent.gradients.precision import own_precision
from reticent.gradients.randomness import undisturbed
from reticent.inside import Batch, Partition, Task
from reticent.inside.guard import Guard
from reticent.inside.randomness import torch_seeded
from reticent.inside.ranks import Ranks
from reticent.inside.shares import Shares
from reticent.methods import Method, Plan
from reticent.outside.solution import Solution
from reticent.outside.trial import refuse_witnesses

F = TypeVar("F")
D = TypeVar("D")
NEXT_TO_NOTHING = 20.0
"""Odds that grow 5e8-fold."""


def warn_of_weak_promise(price: Price, size: int, ranks: Ranks) -> None:
    """Warn, once, of a delta that lets whole examples out, and of an epsilon that promises nothing to anybody."""
    epsilon, delta = price.epsilon, price.delta
    if not ranks.leads:
        return
    if delta >= 1 / size:
        message = f"delta is {delta:g}, not below 1/{size}: revealing one whole example at random would satisfy it"
        warnings.warn(message, PrivacyWarning, stacklevel=4)
    if NEXT_TO_NOTHING < epsilon < math.inf:
        message = (
            f"epsilon is {epsilon:g}: the odds that an example took part may grow by e^{epsilon:.0f}, which "
            "promises next to nothing. Budgets between 0.5 and 10 are common"
        )
        warnings.warn(message, PrivacyWarning, stacklevel=4)


def refuse_unusable(
    optimizer: Optimizer, scheduler: LRScheduler | None, task: Task, plan: Plan, average_last: float = 0.0
) -> None:
    """Refuse a model that is not the method's, and what asks the data, trains another, or shows candidates around."""
    plan.method.refuse_unfit(task.model)
    if isinstance(plan.method.direction, Solution):
        _refuse_other_steps(optimizer, scheduler, average_last, plan.method.name)
    flat = task.flat
    if isinstance(optimizer, LBFGS):
        raise SettingError("LBFGS evaluates the loss several times a step, unpaid for: use a first-order optimizer")
    if isinstance(scheduler, ReduceLROnPlateau):
        raise SettingError("ReduceLROnPlateau needs a loss, which is private: use a schedule fixed in advance")
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    trained = {id(p): name for name, p in flat.named()}
    missing = [name for key, name in trained.items() if key not in held]
    if missing:
        raise SettingError(
            f"the optimizer does not hold the trainable parameter {missing[0]!r} of the model: make it from this "
            "model's parameters, or freeze (requires_grad_(False)) what is not to be trained"
        )
    frozen = {id(p) for p in flat.frozen()}
    if held - trained.keys() - frozen:
        raise SettingError("the optimizer holds parameters that are not the model's: make it from this model's own")
    if plan.bundles:
        refuse_witnesses(optimizer)  # and again before every candidate


def _refuse_other_steps(optimizer: Optimizer, scheduler: LRScheduler | None, average_last: float, method: str) -> None:
    """A solution is a place: other steps than SGD's of length 1 end elsewhere, and so does a mean with earlier ones."""
    usual = {"lr": 1.0, "momentum": 0.0, "weight_decay": 0.0, "maximize": False}
    each = getattr(optimizer, "optimizers", (optimizer,))
    there = all(type(one) is SGD for one in each) and scheduler is None and not average_last
    if not there or any(group[name] != value for group in optimizer.param_groups for name, value in usual.items()):
        raise SettingError(
            f"{method} finds the weights themselves, and a step of SGD of length 1 puts them in place: "
            "leave out optimizer (in rt.Run it is SGD(model.parameters(), lr=1.0)), lr, momentum, schedules of lr, and "
            "average_last"
        )


def promises_of(optimizer: Optimizer, plan: Plan) -> tuple[str, ...]:
    """What is taken for granted of an optimizer that is not torch's or ours, where dropped candidates are hidden."""
    each = getattr(optimizer, "optimizers", (optimizer,)) if plan.bundles else ()
    foreign = [kind for kind in map(type, each) if not kind.__module__.startswith(("torch.optim", "reticent."))]
    return tuple(
        f"rests on the promise of {kind.__name__}: nothing of a dropped candidate outside its state" for kind in foreign
    )


def refuse_on_ranks(ranks: Ranks, shares: Shares, method: Method, *, diagnostics: bool) -> None:
    """Refuse what several ranks cannot do together."""
    if diagnostics and ranks.world > 1:
        raise SettingError(
            "private diagnostics are recorded in one process: leave out private_diagnostics, or run without torchrun"
        )
    if shares.cuts and isinstance(method.sampler, Partition):
        raise SettingError(
            f"{method.name} compares whole batches, of which no rank holds the examples: let every rank hold all of "
            "them (memory-mapped, or on a shared disk) and leave out shard"
        )


def refuse_other_call(described: Mapping[str, object], ranks: Ranks) -> None:
    """Refuse ranks that were asked for different runs, naming the first setting that differs."""
    ranks.refuse_other(
        [version(name) for name in ("torch", "numpy", "randomgen", "reticent")],
        "the version of torch, numpy, randomgen or reticent",
        "another version may draw otherwise from the same key. Install the same on all machines",
    )
    theirs = ranks.share(lambda: described)
    with ranks.together():
        for name in sorted((theirs.keys() | described.keys()) - {"dataset"}):  # which only the first rank charges
            if theirs.get(name) != described.get(name):
                raise SettingError(
                    f"rank {ranks.rank} has {name} = {described.get(name)!r}, rank 0 {theirs.get(name)!r}: all ranks "
                    "of a run must make the same call. Runs of their own are started without torchrun"
                )


class Checked:
    """A model that was checked in the modes its modules are in: put into others, it is checked again."""

    def __init__(self, task: Task, made_up: Batch, probes: Batch | None, guard: Guard):
        self._asked, self._model = (task, made_up, probes, guard), task.model
        self._known: set[tuple[bool, ...]] = set()
        self()

    def __call__(self) -> None:
        """Check it, unless that was done."""
        modes = tuple(module.training for module in self._model.modules())
        if modes not in self._known:
            with own_precision():  # as in a round
                check_model(*self._asked)
            self._known.add(modes)


def refuse_other_model(task: Task, rows: Batch, ranks: Ranks) -> None:
    """Refuse a model or a loss that answers otherwise on another rank, with the same weights, for the same rows."""
    if ranks.world == 1:
        return
    try:
        with undisturbed(task.model), torch_seeded(0), torch.no_grad():
            found = task.loss(task.model, rows).detach().double().cpu()
    except Exception:  # what was to be said of it is said by the check
        found = torch.zeros(0)
    theirs = ranks.share(lambda: found)
    with ranks.together():
        if theirs.shape != found.shape or not torch.allclose(theirs, found, rtol=1e-3, atol=1e-5, equal_nan=True):
            raise SettingError(
                f"the model or the loss answers otherwise on rank {ranks.rank} than on rank 0, with the same weights: "
                "the bound would not hold for an example that moves from one to the other. Build the same on all ranks"
            )


def for_the_first(folder: F | None, dataset: D | None, ranks: Ranks) -> tuple[F | None, D | None]:
    """What only the first rank writes to or charges: others may be given the same, and nothing it does not know."""
    mine = {"folder": _named(folder), "dataset": _named(dataset)}
    theirs = ranks.share(lambda: mine)
    with ranks.together():
        for name, given in mine.items():
            if given is not None and given != theirs[name]:
                raise SettingError(
                    f"rank {ranks.rank} was given {given!r} as {name}, and rank 0 {theirs[name]!r}: only rank 0 writes "
                    "and charges, so that it would be forgotten. Make the same call on all ranks"
                )
    return ranks.only(folder), ranks.only(dataset)


def _named(given: object) -> str | None:
    """A dataset by its name; of a folder only whether there is one, since each machine may see it elsewhere."""
    return "a folder" if isinstance(given, str | Path) else getattr(given, "name", None)


def check_model(task: Task, made_up: Batch, probes: Batch | None, guard: Guard) -> None:
    """Refuse a model that mixes examples or keeps something of them, as far as made-up and public rows can show it."""
    if any(part.training and getattr(part, "gradient_checkpointing", False) is True for part in task.model.modules()):
        raise ModelError(
            "gradient checkpointing is on: parts of the model are computed again while gradients are taken, out of "
            "sight of what keeps the examples apart. Turn it off (model.gradient_checkpointing_disable()); "
            "max_physical_batch_size (the Trainer's per_device_train_batch_size) bounds the memory"
        )
    check(task.model, task.loss, made_up, probes=probes, most=task.together)
    # Only now: what a model makes once, in its first pass, is not of the examples.
    rows = made_up if probes is None else probes
    with suppress(Exception), undisturbed(task.model), torch.no_grad():
        task.loss(task.model, rows)  # and ends what a pass that failed has left open
    try:
        with guard(), torch.no_grad():
            task.loss(task.model, rows)
    except ReticentError:
        raise
    except Exception:
        return  # what was to be said of it is said by the check
