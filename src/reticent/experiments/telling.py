"""Telling: what came of a fit, in the form that every run's result has, so that pages and audits read one thing."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from reticent import methods
from reticent.call import NOT_REPEATED, Call, everything
from reticent.data.preprocessing import in_units
from reticent.errors import ReticentError
from reticent.experiments.judging import Matrix, per_class, shown
from reticent.experiments.record import about_this_machine, curve_to, from_ledger
from reticent.fitting import fit
from reticent.losses import about_loss, cross_entropy
from reticent.results import Result, name_of
from reticent.settling import RULED
from reticent.trained import Trained

UNNAMED = "own data"
CROSS_ENTROPY = about_loss(cross_entropy)["name"]
"""The one loss that recipes have."""
BY_NAME = ("epsilon", "size", "adjacency", "max_physical_batch_size", "seed")
"""The settings of a call that a recipe has under the same name; the others follow from its plan, or by the rule."""


def result_of(trained: Trained, call: Call, folder: Path | None) -> Result:
    """The result of a fit; it says of private examples no more than the guarantee covers, of public ones anything."""
    metrics, on = _judged(trained, call)
    matrix = _matrix(metrics)
    stored = None if folder is None else folder / "ledger.jsonl"
    facts, points = (None, None) if stored is None else from_ledger(stored, trained.guarantee, call.plan.already)
    name, classes = call.asked["name"], call.asked["classes"]
    return Result(
        run=name_of(folder) if folder is not None else "model",
        label=call.plan.method.name,
        recipe=settings_of(trained, call),
        accuracy=_number(metrics.get("accuracy")),
        accuracy_on=on,
        metrics=in_units(trained.preprocessing, numbers_in(metrics)) or None,
        guarantee=trained.guarantee,
        by_rule=tuple(call.settled.by_rule),
        rounds=trained.rounds,
        kept=trained.kept,
        noise_multiplier=call.plan.settings.noise_multiplier,
        seconds=round(call.seconds, 3),
        out=None if folder is None else str(folder),
        examples=call.plan.settings.size,
        dataset=str(name) if name is not None else None,
        class_names=_names(trained, classes),
        classes=None if matrix is None else per_class(matrix),
        confusion=None if matrix is None else shown(matrix),
        learning=call.learning,
        beyond=beyond_recipes(call),
        stages=repr(call.plan.method),
        ledger=facts,
        epsilon_by_round=points or curve_to(trained.guarantee, call.entries, call.plan.already),
        machine=about_this_machine(),
    )


def _judged(trained: Trained, call: Call) -> tuple[Mapping[str, object], str]:
    """The metrics on the test examples, and which these are; what cannot be judged must not undo a training."""
    public = call.asked["test"]
    if public is None:
        return {}, "no test examples were given"
    try:
        examples = everything(public, call.model)
        found = trained.evaluate(examples)
    except ReticentError as error:
        return {}, f"the test examples could not be judged: {error}"
    return found, f"{len(examples[-1]):,} test examples given with the run" if isinstance(examples, tuple) else "given"


def numbers_in(metrics: Mapping[str, object]) -> dict[str, float]:
    """The metrics that are numbers."""
    found = {name: _number(value) for name, value in metrics.items()}
    return {name: value for name, value in found.items() if value is not None}


def _number(value: object) -> float | None:
    return value if isinstance(value, float) and math.isfinite(value) else None


def _matrix(metrics: Mapping[str, object]) -> Matrix | None:
    """The table of answers, where there is one for all classes together."""
    table = np.asarray(metrics.get("confusion_matrix", ()), dtype=np.int64)
    return table if table.ndim == 2 else None


def _names(trained: Trained, classes: object) -> tuple[str, ...] | None:
    """What the classes are called: as was said, or as the schema of the examples says."""
    if isinstance(classes, Sequence):
        return tuple(map(str, classes))
    return None if trained.preprocessing is None else tuple(trained.preprocessing.classes) or None


def settings_of(trained: Trained, call: Call) -> dict[str, object]:
    """The settings of a fit by the names that recipes have for them; numbers and words only, never data."""
    asked, plan = call.asked, call.plan
    known = methods.options(plan.method.name) if plan.method.name in methods.names() else {}
    options = {name: value for name, value in call.options.items() if _is_plain(value)}
    numbers = {
        "max_grad_norm": plan.method.max_grad_norm if "max_grad_norm" in known else None,
        "noise_multiplier": plan.settings.noise_multiplier if asked["epsilon"] is None else None,
    }
    return {
        "data": str(asked["name"] or UNNAMED),
        "model": type(call.model).__name__,
        "method": plan.method.name,
        "options": {name: value for name, value in options.items() if name not in numbers},
        "delta": trained.guarantee.delta,
        **{name: getattr(call.settled.settings, name) for name in RULED},
        **{name: asked[name] for name in BY_NAME},
        **numbers,
    }


def beyond_recipes(call: Call) -> tuple[str, ...]:
    """What a recipe cannot say of a fit: its data and model always, and what was handed over as an object.

    Whatever `fit` takes that has no name in a recipe, and is not as it is by default, is among them.
    """
    asked, said = call.asked, {*NOT_REPEATED, *BY_NAME, *RULED, "method", "delta", "loss"}
    defaults = {name: one.default for name, one in inspect.signature(fit).parameters.items()}
    others = [name for name in asked if name not in said and asked[name] is not defaults[name]]
    others += [] if isinstance(asked["method"], str) else ["method"]
    others += [] if all(_is_plain(value) for value in call.options.values()) else ["options"]
    others += [] if call.normalising is None else ["normalising"]
    usual = asked["loss"] in (None, CROSS_ENTROPY) and about_loss(call.loss)["name"] == CROSS_ENTROPY
    others += [] if usual else ["loss"]
    return ("data", "model", *others)


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float | str)
