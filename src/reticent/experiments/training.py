"""Train by recipe: build the parts it names, run them, and tell what came of it."""

from __future__ import annotations

import dataclasses
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

from torch import nn

from reticent import data, defences
from reticent.accounting import Guarantee
from reticent.budgets import DatasetBudget
from reticent.certificate import CARD
from reticent.checkpoint import ROUNDS
from reticent.errors import ResumeError, SettingError
from reticent.experiments.factories import is_factory
from reticent.experiments.judging import judged
from reticent.experiments.normalising import charges, normalise
from reticent.experiments.parts import blueprint_of, model_of
from reticent.experiments.people import people_of, set_aside, subset_of
from reticent.experiments.poisoning import poisoned
from reticent.experiments.recipe import Recipe, check
from reticent.experiments.record import described, with_ledger
from reticent.experiments.request import request
from reticent.experiments.settling import ruled, settled
from reticent.experiments.stored import keep_recipe, recipe_of
from reticent.experiments.tracking import JsonLines, write_private_diagnostics
from reticent.files import make_folder, private_folder
from reticent.filled import places_to_fill
from reticent.inside import Persons
from reticent.inside.several import here, refuse_several
from reticent.learning import LearningCurve
from reticent.methods.solving import rounds_in
from reticent.optimizers import make_optimizer, make_scheduler
from reticent.results import ANSWER, Learning, PlainSettings, Result, name_of, read_result
from reticent.results.sealing import seal
from reticent.run import Run, Step
from reticent.trained import Trained

Progress = Callable[[Run, Step], None]
DIAGNOSTICS = "diagnostics.jsonl"
"""In the private folder of a run."""
CHOSEN_BY = "the test examples chose the updates: their accuracy is no estimate of anything"
"""What is said of the accuracy of a run that was judged on the test examples."""


def train(
    recipe: Recipe,
    out: Path | None = None,
    *,
    resume: bool = False,
    progress: Progress | None = None,
    charge_to: DatasetBudget | None = None,
) -> Result:
    """Run a recipe to its end; with a folder, everything about it is kept there and can be resumed.

    >>> train(Recipe(data="digits", epsilon=3.0, epochs=1, seed=0)).guarantee.status
    'proved'
    """
    said, ranks = recipe.filled(), here()
    check(said)
    out, progress = ranks.only(out), ranks.only(progress)
    if out is not None:
        make_folder(out)
    start = time.perf_counter()
    dataset = examples(said)
    recipe = settled(said, dataset)
    done = ranks.share(lambda: None if out is None else finished(out, recipe, resume=resume))
    if done is not None:
        return done
    if charge_to is not None:
        _refuse_uncharged(recipe)
    if recipe.method in defences.names():
        refuse_several(recipe.method)
        trained, noise, learning = defended(recipe, dataset), 0.0, None
    else:
        _warn_of_large_batch(recipe, dataset)
        run = prepare(recipe, dataset, out, resume=resume, charge_to=charge_to)
        if out is not None:
            keep_recipe(said, out)
        curve = curve_of(recipe, dataset, out)
        run.tellers += [curve] if out is None else [JsonLines(out / ROUNDS), curve]
        for step in run:
            if progress is not None:
                progress(run, step)
        trained = Trained.of(run, {"recipe": recipe.to_json()})
        noise, learning = run.plan.settings.noise_multiplier, curve.told()
        if recipe.private_diagnostics and out is not None:
            write_private_diagnostics(run, private_folder(out) / DIAGNOSTICS)
    by_rule = ruled(said, recipe)
    return finish(recipe, dataset, trained, out, start, noise_multiplier=noise, by_rule=by_rule, learning=learning)


def _warn_of_large_batch(recipe: Recipe, dataset: data.Dataset) -> None:
    """A batch cannot be larger than what there is."""
    size = recipe.size or len(people_of(recipe, dataset.train))
    if recipe.batch_size is not None and recipe.batch_size > size:
        message = f"batch_size is {recipe.batch_size:g}, but there are {size} examples: all take part in every round"
        warnings.warn(message, stacklevel=3)


def _refuse_uncharged(recipe: Recipe) -> None:
    """Refuse what would look at the examples of a dataset without being charged to it."""
    if recipe.method in defences.names():
        raise SettingError(f"{recipe.method} proves nothing: no budget of a dataset covers it")
    if recipe.validation is not None:
        raise SettingError("the accuracy on validation examples is charged to nobody: leave out validation")


def finish(
    recipe: Recipe,
    dataset: data.Dataset,
    trained: Trained,
    out: Path | None,
    start: float,
    *,
    noise_multiplier: float,
    by_rule: tuple[str, ...] = (),
    optimizer: PlainSettings | None = None,
    learning: Learning | None = None,
) -> Result:
    """Measure accuracy, tell everything about a run, and keep it in the folder; plain training has an optimizer."""
    named = recipe.model is None or not is_factory(recipe.model)  # one's own network is built by nobody but its owner
    about = trained.about | ({"network": blueprint_of(recipe, dataset).to_json()} if named else {})
    trained = dataclasses.replace(trained, about=about, preprocessing=dataset.train.preprocessing)
    label = recipe.method if optimizer is None else "plain"
    accuracy, metrics = judged(trained.model, dataset)
    result = Result(
        run=name_of(out) if out is not None else label,
        label=label,
        kind="private" if optimizer is None else "plain",
        accuracy=accuracy,
        metrics=metrics,
        accuracy_on=dataset.note if dataset.test is not None else "no test split: accuracy was not measured",
        guarantee=trained.guarantee,
        rounds=trained.rounds,
        kept=trained.kept,
        noise_multiplier=noise_multiplier,
        optimizer=optimizer,
        learning=learning,
        seconds=round(time.perf_counter() - start, 3),
        recipe=recipe.to_json(),
        by_rule=by_rule,
        out=str(out) if out is not None else None,
    )
    result = described(result, recipe, dataset, trained.model)
    if out is None:
        return result
    result = with_ledger(result, out)
    trained.save(out, {ANSWER: seal(result.stored(), indent=2)})
    return result


def examples(recipe: Recipe) -> data.Dataset:
    """The dataset a recipe names, with the features it asks for; for tuning, its test examples are left out of sight.

    >>> len(examples(Recipe(data="digits", validation=300)).train)
    1137
    """
    dataset = data.load(recipe.data, folder=recipe.data_folder, declared=recipe.declared())
    places_to_fill(dataset.train, recipe.fill_noise)  # refuses one without the other
    if recipe.features is not None:
        quiet = recipe.size is not None or recipe.groups is not None  # how many rows there are is private then
        dataset = data.extract(
            dataset, recipe.features, progress=None if quiet else _tell_features, folder=recipe.data_folder
        )
    if recipe.subset is not None:
        dataset = dataclasses.replace(dataset, train=subset_of(dataset.train, recipe.subset))
    if recipe.options.get("judge_on_test"):
        dataset = dataclasses.replace(dataset, note=CHOSEN_BY)
    if recipe.validation is None:
        return dataset
    train, judges = set_aside(dataset.train, recipe.validation)
    who = "examples" if recipe.groups is None else "persons"
    note = f"{recipe.validation} training {who} set aside for tuning, not the test examples"
    return dataclasses.replace(dataset, train=train, test=judges, note=note)


def curve_of(recipe: Recipe, dataset: data.Dataset, out: Path | None) -> LearningCurve:
    """What judges the model along the way, on the examples that judge it in the end; nothing, if not asked for."""
    if recipe.curve is None:
        return LearningCurve(None, out)
    if dataset.test is None:
        raise SettingError(f"curve is of test examples, and {recipe.data} has none: leave it out, or give test_data")
    which = "test examples" if recipe.validation is None else dataset.note
    on = CHOSEN_BY if recipe.options.get("judge_on_test") else f"{which}; nothing is chosen by them"
    return LearningCurve((dataset.test.x, dataset.test.y), out, points=recipe.curve, on=on, priced=True)


def _tell_features(done: int, total: int) -> None:
    """A line on stderr for every tenth of the features; a cache answers at once and says nothing."""
    if 1000 <= total > done and done * 10 // total != (done - 64) * 10 // total:
        print(f"features: {done} of {total}", file=sys.stderr)


def prepare(
    recipe: Recipe,
    dataset: data.Dataset,
    out: Path | None = None,
    *,
    resume: bool = False,
    charge_to: DatasetBudget | None = None,
) -> Run:
    """The run a (filled) recipe describes, ready for its first round; what it does not say follows the rule."""
    recipe = settled(recipe, dataset)
    private, public = set_aside(dataset.train, recipe.holdout)
    if recipe.options.get("judge_on_test"):
        public = _reported_on(dataset)
    people = people_of(recipe, private)
    asked = request(recipe, len(people), public)
    private = poisoned(private, asked, dataset.classes)
    model = model_of(recipe, dataset)
    optimizer = make_optimizer(recipe.optimizer or asked.method.optimizer, model, recipe.lr or 0.0, recipe.momentum)
    batch_size = asked.batch_size or asked.size
    rounds = rounds_in(recipe.epochs or 1, asked.size, batch_size)
    run = Run(
        model,
        optimizer,
        people if isinstance(people, Persons) else private,
        method=asked.method,
        batch_size=batch_size,
        size=recipe.size,
        adjacency=recipe.adjacency,
        views=recipe.views,
        epochs=asked.epochs,
        budget=asked.budget,
        delta=asked.delta,
        already=asked.already,
        scheduler=make_scheduler(recipe.lr_schedule, optimizer, rounds),
        average_last=recipe.average_last or 0.0,
        seed=recipe.seed,
        max_physical_batch_size=recipe.max_physical_batch_size,
        private_diagnostics=recipe.private_diagnostics,
        folder=out,
        resume=resume,
        dataset=charge_to,
    )
    normalise(model, private, recipe, out)  # only now: what the plan refuses must not have been released
    return run


def _reported_on(dataset: data.Dataset) -> data.Examples:
    if dataset.test is None:
        raise SettingError(f"{dataset.name} has no test examples that could judge: leave out judge_on_test")
    return dataset.test


def defended(recipe: Recipe, dataset: data.Dataset) -> Trained:
    """A model trained with an empirical defence: no epsilon, and that is said."""
    if dataset.numeric:
        raise SettingError(f"{recipe.method} defends classifiers, and {recipe.data} has a number to predict")
    if charges(recipe):
        raise SettingError(
            f"{recipe.method} takes no centre, whiten or statistics_noise: it spends no budget to charge them to"
        )
    if recipe.epsilon is not None:
        print(f"reticent: {recipe.method} gives no guarantee: epsilon is not kept to", file=sys.stderr)
    shared = {name: getattr(recipe, name) for name in ("epochs", "batch_size", "lr") if getattr(recipe, name)}
    settings = shared | recipe.options
    make: Callable[[], nn.Module] = partial(model_of, recipe, dataset)
    found = defences.defend(recipe.method, make, dataset.train, seed=recipe.seed, **settings)
    guarantee: Guarantee = found.guarantee
    return Trained(found.model, guarantee, found.rounds, found.rounds, {"recipe": recipe.to_json()})


def finished(out: Path, recipe: Recipe, *, resume: bool) -> Result | None:
    """What came of a finished run, if that is what the folder holds and resuming was asked for."""
    if not (out / ANSWER).exists():
        return None
    if not resume:
        raise ResumeError(f"{out} holds a finished run: give another folder, or --resume to see its result")
    result = read_result(out)
    if recipe_of(result) != recipe:
        raise ResumeError(f"{out} holds a finished run of another recipe: give another folder")
    return result if (out / CARD).exists() else None  # the card is written last
