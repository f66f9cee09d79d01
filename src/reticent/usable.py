"""What a run cannot work with, told before it begins."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from contextlib import suppress

import torch
from torch.optim import LBFGS, Optimizer
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from reticent.accounting import Price
from reticent.errors import PrivacyWarning, ReticentError, SettingError
from reticent.gradients import check
from reticent.gradients.randomness import undisturbed
from reticent.inside import Batch, Flat, Partition, Task
from reticent.inside.guard import Guard
from reticent.inside.ranks import Ranks
from reticent.inside.shares import Shares
from reticent.methods import Method, Plan
from reticent.outside.trial import refuse_witnesses

NEXT_TO_NOTHING = 20.0
"""Odds that grow 5e8-fold."""


def warn_of_weak_promise(price: Price, size: int) -> None:
    """Warn of a delta that lets whole examples out, and of an epsilon that promises nothing to anybody."""
    epsilon, delta = price.epsilon, price.delta
    if delta >= 1 / size:
        message = f"delta is {delta:g}, not below 1/{size}: revealing one whole example at random would satisfy it"
        warnings.warn(message, PrivacyWarning, stacklevel=4)
    if NEXT_TO_NOTHING < epsilon < math.inf:
        message = (
            f"epsilon is {epsilon:g}: the odds that an example took part may grow by e^{epsilon:.0f}, which "
            "promises next to nothing. Budgets between 0.5 and 10 are common"
        )
        warnings.warn(message, PrivacyWarning, stacklevel=4)


def refuse_unusable(optimizer: Optimizer, scheduler: LRScheduler | None, flat: Flat, plan: Plan) -> None:
    """Refuse optimizers and schedules that ask the data, train something else, or show candidates to others."""
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


def promises_of(optimizer: Optimizer, plan: Plan) -> tuple[str, ...]:
    """What is taken for granted of an optimizer that is not torch's or ours, where dropped candidates are hidden."""
    kind = type(optimizer)
    if not plan.bundles or kind.__module__.startswith(("torch.optim", "reticent.")):
        return ()
    return (f"rests on the promise of {kind.__name__}: nothing of a dropped candidate outside its state",)


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
            check_model(*self._asked)
            self._known.add(modes)


def check_model(task: Task, made_up: Batch, probes: Batch | None, guard: Guard) -> None:
    """Refuse a model that mixes examples or keeps something of them, as far as made-up and public rows can show it."""
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
