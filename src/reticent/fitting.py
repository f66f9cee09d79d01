"""Fit in one call."""

from __future__ import annotations

import inspect
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from reticent.accounting import Budget
from reticent.accounting.adjacency import adjacency_of
from reticent.budgets import DatasetBudget
from reticent.call import Call, Start, everything, refuse_unreadable
from reticent.errors import DataError, SettingError, UnknownName, require
from reticent.evaluating import predict
from reticent.filled import places_to_fill
from reticent.inside import Batch, Persons, Store, by_person, readable
from reticent.inside.forms import as_padded, say_one_form
from reticent.inside.missing import warn_of_missing
from reticent.inside.ranks import Ranks
from reticent.inside.several import here
from reticent.inside.sharding import unwrapped
from reticent.inside.store import Mapped
from reticent.inside.views import Views
from reticent.learning import LearningCurve
from reticent.losses import LossLike, Paired, about_loss, choose_loss, cross_entropy, per_example
from reticent.losses.calling import parted
from reticent.methods import Method, get
from reticent.methods import options as known_options
from reticent.methods.planning import default_delta
from reticent.normalised import Normalised, Prepared, prepared
from reticent.optimizers import make_optimizer
from reticent.origins import Initial
from reticent.run import Run, Step
from reticent.settling import RULED, Settled, settle
from reticent.trained import Trained

_AS_SAID = (
    *("delta", "size", "adjacency", "views", "shard", "seed", "max_physical_batch_size", "probes"),
    *("folder", "resume", "initial", "dataset"),
)
"""What a run is told as it was said."""


def fit(
    model: nn.Module,
    examples: Any,
    *,
    method: str | Method = "dpsgd",
    epsilon: float | None = None,
    delta: float | None = None,
    epochs: float | None = None,
    batch_size: float | None = None,
    size: int | None = None,
    adjacency: str | None = None,
    groups: Any = None,
    most_rows: int | None = None,
    views: str | Views | None = None,
    shard: range | None = None,
    lr: float | None = None,
    momentum: float | None = None,
    average_last: float | None = None,
    loss: LossLike = None,
    optimizer: Callable[[Any], Optimizer] | None = None,
    scheduler: Callable[[Optimizer], LRScheduler] | None = None,
    seed: int | None = None,
    progress: Callable[[Run, Step], None] | None = None,
    max_physical_batch_size: int | None = None,
    probes: Batch | None = None,
    fill_noise: float | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
    check_data: bool = False,
    initial: Initial = None,
    dataset: DatasetBudget | None = None,
    test: Any = None,
    validation: Any = None,
    name: str | None = None,
    classes: Sequence[str] | None = None,
    **options: Any,
) -> Trained:
    """Train a model privately in one call: with `epsilon`, the noise is the least that keeps to it.

    Batch, rounds and step follow from public numbers where they are not said; `loss` is a name ("bce"), a loss of
    torch, or any function of (output, target) or (model, batch), and is chosen where it is not said. `size` declares
    the number of examples, and the guarantee is for adding or removing one; `groups` says whose each row is, `shard`
    which of all examples this rank holds (torchrun). `views` of an image ("mirror") are averaged before the bound.
    `initial` says whose the starting weights are, `dataset` is charged. `fill_noise` is the noise of the means that a
    schema with fill = "noisy" asks for. A `folder` lets the run be resumed and verified; public `test` and `validation`
    examples, `name` and `classes` are for its page.

    An example that cannot be evaluated, such as one with a label that the model does not know, counts for nothing.
    `check_data=True` names such labels before training, and records of other shapes than the first: that is private.

    >>> x, y = torch.randn(500, 4), torch.randint(0, 2, (500,))
    >>> trained = fit(nn.Linear(4, 2), (x, y), epsilon=2.0, epochs=1, seed=0)
    >>> trained.guarantee.status, trained.guarantee.epsilon <= 2.0
    ('proved', True)
    """
    asked_for, ranks, began = dict(locals()), here(), time.perf_counter()
    model = asked_for["model"] = unwrapped(model)
    start = Start.of(model)
    refuse_unreadable(model, test=test, validation=validation)
    chosen = _named(method, options) if isinstance(method, str) else _without_options(method, options)
    asked, examples = (examples, examples.examples) if isinstance(examples, Normalised) else (None, examples)
    found, places = by_person(examples, groups, most_rows), places_to_fill(examples, fill_noise)
    warn_of_missing(found, filled=places)
    loss = _chosen_loss(model, found, probes, ranks) if loss is None else loss
    _look_at(model, examples, loss, found, check=check_data, leads=ranks.leads)
    task = about_loss(per_example(loss, model, *readable(found, model, probes)[1:]))["task"]
    counted = _counted(found, shard, ranks, statistics=asked is not None or bool(places))
    budget, settled = _settled(asked_for, chosen, counted if size is None else size, task)
    settings = settled.settings
    made = make_optimizer(optimizer or chosen.optimizer, model, settings.lr, settings.momentum)
    ready = prepared(model, found, asked, budget, places, fill_noise)
    run = Run(
        ready.model,
        made,
        found if isinstance(found, Persons) else examples,
        method=chosen,
        batch_size=settings.batch_size,
        loss=loss,
        epochs=settings.epochs,
        budget=budget,
        already=ready.already,
        scheduler=_schedule(scheduler, made),
        average_last=settings.average_last,
        **{name: asked_for[name] for name in _AS_SAID},
    )
    folder, tell = ranks.only(folder), ranks.only(progress) or _tell_nobody
    _release(ready, run, size, seed, folder)  # only now: what the plan refuses must not have been released
    run.tellers.append(curve := LearningCurve(None if validation is None else everything(validation, model), folder))
    for step in run:
        tell(run, step)
    about = {**ready.about, "loss": about_loss(run.loss), **settled.to_json()}
    call = Call(asked_for, start, run.plan, settled, run.loss, run.ledger, curve.told(), time.perf_counter() - began)
    trained = replace(Trained.of(run, about, getattr(examples, "preprocessing", None)), call=call)
    if folder is not None:
        trained.save(folder)
    return trained


def _release(ready: Prepared, run: Run, size: int | None, seed: int | None, folder: str | Path | None) -> None:
    """Release what comes before training; a model that holds released numbers says so, wherever this breaks off."""
    if ready.already:
        run.begin()
    ready.release(size, seed, folder)


def _schedule(make: Callable[[Optimizer], LRScheduler] | None, made: Optimizer) -> LRScheduler | None:
    """The schedule of the run's own optimizer, if there is to be one."""
    if make is None:
        return None
    require(callable(make), f"scheduler makes a schedule of an optimizer, as StepLR(made, 30), and is not {make!r}")
    return make(made)


def _tell_nobody(run: Run, step: Step) -> None:
    """Nothing."""


def _counted(found: Store, shard: range | None, ranks: Ranks, *, statistics: bool) -> int:
    """How many examples there are on all ranks."""
    if shard is not None and statistics:
        raise SettingError("statistics are released by one rank for all, which must hold all examples: leave out shard")
    return sum(ranks.told(0 if shard is None else len(found))) or len(found)


def _chosen_loss(model: nn.Module, examples: Any, probes: Batch | None, ranks: Ranks) -> LossLike:
    """The loss that suits model and targets, told on stderr."""
    loss, why = choose_loss(model, *readable(examples, model, probes)[1:])
    if ranks.leads:
        print(f"reticent: no loss was given: {loss}, since {why}", file=sys.stderr)
    return loss


def _settled(asked: dict[str, Any], method: Method, public: int, task: str | None) -> tuple[Budget | None, Settled]:
    """The budget, and the settings that follow from it and from what was said."""
    epsilon, delta = asked["epsilon"], asked["delta"]
    relation = adjacency_of(asked["size"], asked["adjacency"])
    bound = default_delta(public) if delta is None else delta
    budget = Budget(epsilon, bound, adjacency=relation) if epsilon is not None else None
    said = {name: asked[name] for name in RULED}
    if said["batch_size"] is not None and said["batch_size"] > public:
        message = f"batch_size is {said['batch_size']:g}, but there are {public} examples: all take part in every round"
        warnings.warn(message, stacklevel=3)
    if asked["optimizer"] is not None and said["average_last"] is None:
        said["average_last"] = 0.0  # whoever brings steps of their own gets them as they are
    return budget, settle(said, asked["model"], method, size=public, budget=budget, task=task)


def _named(method: str, options: dict[str, Any]) -> Method:
    """A method by its name; a setting that neither it nor `fit` has is told by the nearest of all of them."""
    known = known_options(method)
    strange = next((name for name in options if name not in known), None)
    if strange == "collate_fn":
        raise SettingError(
            "what an example gives must not depend on the others that are drawn, and a batch is padded to its longest: "
            "write rt.fit(model, rt.data.padded(examples, LENGTH, collate_fn=collate_fn), ...), with a public LENGTH"
        )
    if strange is not None:
        raise UnknownName(
            f"setting of rt.fit and option of {method}", strange, {*inspect.signature(fit).parameters, *known}
        )
    return get(method, **options)


def _without_options(method: Method, options: dict[str, Any]) -> Method:
    if options:
        raise SettingError(f"options {sorted(options)} go with a method's name; a Method carries its own")
    return method


def _look_at(model: nn.Module, examples: Any, loss: LossLike, found: Store, *, check: bool, leads: bool) -> None:
    """Look at all records where that was asked for; else say one line by the form of the first."""
    if check:
        _check(model, examples, loss, found)
    elif leads:
        say_one_form(found.rows if isinstance(found, Persons) else found)


def _check_forms(examples: Store) -> None:
    """Records of another form than the first count for nothing: where there are many, they were not padded."""
    rows = examples.rows if isinstance(examples, Persons) else examples
    if isinstance(rows, Mapped) and (odd := rows.odd()):
        raise DataError(
            f"{odd} of {len(rows)} records cannot be read or have other shapes than the first: they would count for "
            f"nothing. Pad or cut them to one shape, or leave them out. {as_padded(rows.form)}"
        )


def _check(model: nn.Module, examples: Any, loss: LossLike, found: Store) -> None:
    """Forms and labels that the model cannot answer for would count for nothing, or fail in the middle of the run."""
    _check_forms(found)
    store, rows, _ = readable(examples, model)
    wanted = per_example(loss, model, rows)
    if not (wanted is cross_entropy or (isinstance(wanted, Paired) and wanted.kind == "classes")):
        return
    classes = predict(model, rows).shape[1]
    everyone = np.array_split(np.arange(len(store)), -(-len(store) // store.at_once))
    y = torch.cat([parted(store.take(part))[1].flatten() for part in everyone])
    low, high = y.min().item(), y.max().item()
    if y.is_floating_point() or low < 0 or high >= classes:
        raise DataError(
            f"labels must be whole numbers from 0 to {classes - 1}, as many as the model has outputs; "
            f"found {y.dtype} from {low} to {high}. Renumber the labels, or give the model {int(high) + 1} outputs."
        )
