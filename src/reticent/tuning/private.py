"""Tuning on private examples: a random number of trials, of which the best is released and all are paid for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from reticent.accounting import Budget
from reticent.accounting.adjacency import adjacency_of
from reticent.accounting.selection import LOGARITHMIC, gamma_for
from reticent.budgets import DatasetBudget
from reticent.errors import SettingError
from reticent.filled import places_to_fill
from reticent.inside import Persons, by_person, readable
from reticent.inside.persons import unit_of
from reticent.inside.several import refuse_several
from reticent.losses import LossLike, about_loss, per_example
from reticent.methods import Method, get
from reticent.methods.planning import default_delta
from reticent.methods.solving import rounds_in
from reticent.normalised import Normalised
from reticent.settling import settle
from reticent.tuning.choices import Choice, check, usual
from reticent.tuning.judges import Judges, PrivateJudges, PublicJudges
from reticent.tuning.places import Elsewhere
from reticent.tuning.search import Search
from reticent.tuning.trials import Trials, new_model
from reticent.tuning.tuned import Tuned

EXPECTED = 8.0
SCORE_NOISE = 10.0
"""Right answers, more or less: little beside the noise of training."""


def tune(
    make: Callable[[], nn.Module],
    examples: Any,
    *,
    judges: Any,
    judges_are_public: bool = False,
    choices: Sequence[Choice] | None = None,
    epsilon: float,
    delta: float | None = None,
    trials: float = EXPECTED,
    eta: float = LOGARITHMIC,
    score_noise: float = SCORE_NOISE,
    method: str | Method = "dpsgd",
    batch_size: float | None = None,
    epochs: float | None = None,
    size: int | None = None,
    adjacency: str | None = None,
    groups: Any = None,
    most_rows: int | None = None,
    loss: LossLike = None,
    seed: int | None = None,
    max_physical_batch_size: int | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
    dataset: DatasetBudget | None = None,
    jobs: int | None = None,
    cluster: str | None = None,
    **options: Any,
) -> Tuned:
    """Train about `trials` models, each with settings drawn from the choices, and release the best of them.

    The budget covers the whole search (Papernot & Steinke 2022, theorem 2): the number of trials is drawn beforehand
    and stays secret, and so does every model but the best. `judges` score a trial: examples that are public, which
    must be said with `judges_are_public=True`, or private ones, which none of the examples must be: then a noisy count
    of right answers is part of every trial's cost. `groups` says whose each row is, as for `rt.fit`; then judges are
    public. `dataset` is charged for the whole search before it begins, and after all that can be checked was. `jobs`
    trials are made at a time, each in a process of its own, or on a `cluster` of Ray.

    >>> import torch
    >>> x, y = torch.randn(400, 4), torch.randint(0, 2, (400,))
    >>> found = tune(lambda: nn.Linear(4, 2), (x[:300], y[:300]), judges=(x[300:], y[300:]), epsilon=4.0, epochs=1,
    ...              batch_size=100, trials=2, seed=0)
    >>> found.trained.guarantee.epsilon <= 4.0, sorted(found.settings)
    (True, ['average_last', 'lr', 'max_grad_norm', 'momentum'])
    """
    refuse_several("rt.tune")
    if options and not isinstance(method, str):
        raise SettingError(f"options {sorted(options)} go with a method's name; a Method carries its own")
    chosen = get(method, **options) if isinstance(method, str) else method
    refuse_unfit(chosen)
    _refuse_statistics(examples)
    found, model = by_person(examples, groups, most_rows), new_model(make)
    public = len(found) if size is None else size
    _refuse_judges(found, size, public=judges_are_public)
    relation = adjacency_of(size, adjacency)
    budget = Budget(epsilon, default_delta(public) if delta is None else delta, "rdp", adjacency=relation)
    learned = per_example(loss, model, readable(found, model)[1])
    about = about_loss(learned)
    said = {"batch_size": batch_size, "epochs": epochs}
    rule = settle(said, model, chosen, size=public, budget=budget, task=about["task"]).settings
    shared = Trials(
        make=make,
        examples=found if isinstance(found, Persons) else examples,
        method=chosen,
        size=public,
        declared=size,
        unit=unit_of(found),
        adjacency=adjacency,
        loss=loss,
        batch_size=rule.batch_size,
        rounds=rounds_in(rule.epochs, public, rule.batch_size),
        delta=budget.delta,
        max_physical_batch_size=max_physical_batch_size,
    )
    jury: Judges = PrivateJudges(readable(judges, model)[0], score_noise)
    if judges_are_public:
        jury = PublicJudges(judges, about)
    search = Search(
        shared,
        check(usual(rule) if choices is None else choices),
        {name: getattr(rule, name) for name in ("lr", "momentum", "average_last")}
        | {"max_grad_norm": chosen.max_grad_norm},
        jury,
        budget,
        about,
        eta=eta,
        gamma=gamma_for(trials, eta),
    )
    return search.go(seed, folder, resume=resume, dataset=dataset, elsewhere=Elsewhere(jobs, cluster))


def _refuse_statistics(examples: object) -> None:
    """Refuse examples that wait for something to be released of them before they are trained on."""
    if isinstance(examples, Normalised):
        raise SettingError(
            "rt.tune takes no rt.normalise: its releases would have to be paid in every trial. Normalise by public "
            "numbers, or fit the normalised examples without a search"
        )
    places_to_fill(examples, None)


def _refuse_judges(examples: object, size: int | None, *, public: bool) -> None:
    """Refuse private judges where a count of right answers would tell more than it is charged for."""
    if size is not None and not public:
        raise SettingError("how many private judges there are is public: with a declared size, take public ones")
    if isinstance(examples, Persons) and not public:
        raise SettingError(
            "private judges are counted row by row, and this search promises for persons with all their rows: take "
            "public ones (judges_are_public=True, --aside-is-public)"
        )


def refuse_unfit(method: Method) -> None:
    """Refuse methods whose trials would not all cost the same, known before the first."""
    if method.adaptive is not None or method.noise_multiplier is not None:
        raise SettingError(f"tuning finds the noise of {method.name} itself, once for all trials: say no noise of it")
