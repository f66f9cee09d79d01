"""Fit in one call."""

from __future__ import annotations

import sys
import time
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
from reticent.call import Call, Start, refuse_unreadable
from reticent.data.arrays import as_arrays
from reticent.errors import DataError, SettingError
from reticent.evaluating import predict
from reticent.inside import Batch, Persons, by_person, readable
from reticent.learning import Curve
from reticent.losses import LossLike, Paired, about_loss, choose_loss, cross_entropy, per_example
from reticent.losses.calling import parted
from reticent.methods import Method, get
from reticent.methods.planning import default_delta
from reticent.normalised import Normalised, prepared
from reticent.optimizers import make_optimizer
from reticent.origins import Initial
from reticent.run import Run, Step
from reticent.settling import settle
from reticent.trained import Trained


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

    Batch, rounds and step follow from public numbers where they are not said (defaults.py), and `about` tells them.

    `size` declares the number of examples, and the guarantee is for adding or removing one; otherwise it is for taking
    one's contribution away, and the number is public. `adjacency="replace"`: for exchanging one for another. `groups`
    says whose each row is: then sizes and guarantee are of persons with all their rows (docs/groups.md).

    With `initial=trained`, what an earlier run gave, epsilon and guarantee are for both; `initial="public"` declares
    that the weights owe nothing to these examples. `dataset`, a budget of `DatasetLedger`, is charged before it begins.

    An example that cannot be evaluated, such as one with a label that the model does not know, counts for nothing.
    `check_data=True` looks for such labels before training and names them: what it says is private.

    With a `folder` the run can be resumed, and the trained model is saved there with a card that `verify` checks.
    `loss` is a name ("bce", "mse"), a loss of torch, or any function of (output, target) or (model, batch). Without
    one it is chosen by the type of the targets and the number of outputs, and said on stderr.

    For the model's page: public `test` examples to judge it by, public `validation` examples for a learning curve, the
    `name` of the data, and what the `classes` are called.

    >>> x, y = torch.randn(500, 4), torch.randint(0, 2, (500,))
    >>> trained = fit(nn.Linear(4, 2), (x, y), epsilon=2.0, epochs=1, seed=0)
    >>> trained.guarantee.status, trained.guarantee.epsilon <= 2.0
    ('proved', True)
    """
    asked_for, start, began = dict(locals()), Start.of(model), time.perf_counter()
    refuse_unreadable(model, test=test, validation=validation)
    chosen = get(method, **options) if isinstance(method, str) else _without_options(method, options)
    asked = examples if isinstance(examples, Normalised) else None
    examples = as_arrays(examples if asked is None else asked.examples, like=model)
    found = by_person(examples, groups, most_rows)
    public = len(found) if size is None else size
    if loss is None:
        loss, why = choose_loss(model, *readable(found, model, probes)[1:])
        print(f"reticent: no loss was given: {loss}, since {why}", file=sys.stderr)
    if check_data:
        _check_labels(model, examples, loss)
    bound = default_delta(public) if delta is None else delta
    budget = Budget(epsilon, bound, adjacency=adjacency_of(size, adjacency)) if epsilon is not None else None
    if optimizer is not None and average_last is None:
        average_last = 0.0  # whoever brings steps of their own gets them as they are
    said = {"batch_size": batch_size, "epochs": epochs, "lr": lr, "momentum": momentum, "average_last": average_last}
    settled = settle(said, model, chosen, size=public, budget=budget)
    settings = settled.settings
    made = make_optimizer(optimizer or chosen.optimizer, model, settings.lr, settings.momentum)
    ready = prepared(model, found, asked, budget)
    run = Run(
        ready.model,
        made,
        found if isinstance(found, Persons) else examples,
        method=chosen,
        batch_size=settings.batch_size,
        size=size,
        adjacency=adjacency,
        loss=loss,
        epochs=settings.epochs,
        budget=budget,
        delta=delta,
        already=ready.already,
        scheduler=scheduler(made) if scheduler is not None else None,
        average_last=settings.average_last,
        seed=seed,
        max_physical_batch_size=max_physical_batch_size,
        probes=probes,
        folder=folder,
        resume=resume,
        initial=initial,
        dataset=dataset,
    )
    ready.release(size, seed, folder)  # only now: what the plan refuses must not have been released
    curve = Curve(validation, model, folder)
    for step in run:
        curve(run, step)
        if progress is not None:
            progress(run, step)
    about = {**ready.about, "loss": about_loss(run.loss), **settled.to_json()}
    trained = Trained.of(run, about, getattr(examples, "preprocessing", None))
    call = Call(asked_for, start, run.plan, run.loss, run.ledger, curve.told(), time.perf_counter() - began)
    trained = replace(trained, call=call)
    if folder is not None:
        trained.save(folder)
    return trained


def _without_options(method: Method, options: dict[str, Any]) -> Method:
    if options:
        raise SettingError(f"options {sorted(options)} go with a method's name; a Method carries its own")
    return method


def _check_labels(model: nn.Module, examples: Any, loss: LossLike) -> None:
    """Labels outside what the model can answer would only fail in the middle of the run."""
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
