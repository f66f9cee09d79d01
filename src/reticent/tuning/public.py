"""Tuning on public examples: the search sees no private one, so that only the last run costs anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from reticent.accounting import Budget
from reticent.call import NOT_REPEATED
from reticent.errors import ReticentError, SettingError, require
from reticent.executors import Tell, Work, each
from reticent.files import make_folder, replace_file
from reticent.fitting import fit
from reticent.inside import by_person, readable
from reticent.inside.several import refuse_several
from reticent.methods import Method, get
from reticent.methods.planning import default_delta
from reticent.results.fields import Fields
from reticent.results.sealing import read_sealed, seal
from reticent.settling import settle
from reticent.trained import Trained
from reticent.tuning.choices import Choice, check, usual
from reticent.tuning.judges import score_of
from reticent.tuning.places import Elsewhere
from reticent.tuning.trials import new_model
from reticent.tuning.tuned import Tuned

REHEARSAL = "rehearsal.json"
"""The scores of the choices: a run that is resumed must not choose anew."""
JUDGES = 5
"""One in so many public examples judges, the others are learned from."""
PRIVATE_ONLY = (*NOT_REPEATED, "groups", "most_rows")
"""What is said of the private examples and of the last run alone."""


def tune_on_public(
    make: Callable[[], nn.Module],
    examples: Any,
    *,
    public: Any,
    public_is_public: bool = False,
    choices: Sequence[Choice] | None = None,
    epsilon: float,
    delta: float | None = None,
    method: str | Method = "dpsgd",
    batch_size: float | None = None,
    epochs: float | None = None,
    size: int | None = None,
    seed: int | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
    jobs: int | None = None,
    cluster: str | None = None,
    **settings: Any,
) -> Tuned:
    """Try every choice on examples that were declared public, then train once on the private ones.

    Their privacy is given up, which must be said with `public_is_public=True`. Where no choices are said, multiples of
    the rule's step are tried, which suit a smaller and a larger number of examples alike. `jobs` choices are tried at a
    time, each in a process of its own, or on a `cluster` of Ray. `settings` are those of `rt.fit`.

    >>> import torch
    >>> x, y = torch.randn(400, 4), torch.randint(0, 2, (400,))
    >>> found = tune_on_public(lambda: nn.Linear(4, 2), (x[:200], y[:200]), public=(x[200:], y[200:]),
    ...                        public_is_public=True, choices=[{"lr": 0.1}, {"lr": 1.0}], epsilon=4.0, epochs=1, seed=0)
    >>> found.trained.guarantee.epsilon <= 4.0
    True
    """
    refuse_several("rt.tune_on_public")
    if not public_is_public:
        raise SettingError(
            "the public examples are looked at without noise, so that they get no privacy at all: say "
            "public_is_public=True if they are public, or let private ones judge (tune)"
        )
    model = new_model(make)
    shown = readable(public, model)[0]
    cut, many = len(shown) // JUDGES, len(shown)
    require(cut >= 1, f"{many} public examples are too few: one in {JUDGES} judges, the others are learned from")
    judges, rehearsal = shown.take(np.arange(cut)), shown.take(np.arange(cut, many))
    method = get(method) if isinstance(method, str) else method
    whose, most = settings.get("groups"), settings.get("most_rows")
    private = len(by_person(examples, whose, most)) if size is None else size
    delta = default_delta(private) if delta is None else delta

    def listed(count: int) -> tuple[dict[str, float], ...]:
        """The choices for so many examples."""
        said = {"batch_size": batch_size, "epochs": epochs}
        rule = settle(said, model, method, size=count, budget=Budget(epsilon, delta)).settings
        return check(usual(rule) if choices is None else choices)

    numbers = {"epsilon": epsilon, "delta": delta, "batch_size": batch_size, "epochs": epochs, "seed": seed}
    shared = _Shared(make, method, numbers)
    place = None if folder is None else Path(folder) / REHEARSAL
    scores = _stored(place) if resume else None
    if scores is None:
        alike = {name: value for name, value in settings.items() if name not in PRIVATE_ONLY}
        alike["size"] = None if size is None else many - cut
        tried = [partial(_rehearsed, shared, choice, rehearsal, judges, alike) for choice in listed(many - cut)]
        scores = _scores(tried, Elsewhere(jobs, cluster))
        if place is not None:
            make_folder(place.parent)
            replace_file(place, seal({"scores": scores}))
    choice = listed(private)[best := max(range(len(scores)), key=scores.__getitem__)]
    found = shared.trained(examples, choice, size=size, folder=folder, resume=resume, **settings)
    tuned = Tuned(found, choice, scores[best], f"{cut} examples declared public", {"epsilon": 0.0})
    return replace(tuned, trained=replace(found, about={**found.about, **tuned.about()}))


@dataclass(frozen=True, eq=False)
class _Shared:
    """What all choices share."""

    make: Callable[[], nn.Module]
    method: Method
    numbers: Mapping[str, Any]

    def trained(self, data: Any, choice: Choice, **more: Any) -> Trained:
        """A model trained with a choice."""
        rest: dict[str, Any] = {name: value for name, value in choice.items() if name != "max_grad_norm"}
        own = replace(self.method, max_grad_norm=choice.get("max_grad_norm", self.method.max_grad_norm))
        return fit(new_model(self.make, self.numbers["seed"]), data, method=own, **rest, **self.numbers, **more)


def _rehearsed(
    shared: _Shared, choice: Choice, rehearsal: Any, judges: Any, alike: Mapping[str, Any], tell: Tell
) -> float:  # fmt: skip
    """The score of a choice on public examples, trained as the private ones will be."""
    del tell
    found = shared.trained(rehearsal, choice, **alike)
    return score_of(found.model, judges, found.about["loss"])


def _scores(tried: Sequence[Work], elsewhere: Elsewhere) -> list[float]:
    """The score of each choice; where one fails, the others are tried first."""
    if elsewhere.here:
        return [work(lambda _done, _total: None) for work in tried]
    ended = list(each(elsewhere.executor, [(str(number), work) for number, work in enumerate(tried)]))
    failed = [over.error for over in ended if over.error is not None]
    if failed:
        raise ReticentError(f"a choice could not be tried: {failed[0]}")
    found = {int(over.name): float(over.answer) for over in ended}
    return [found[number] for number in range(len(tried))]


def _stored(place: Path | None) -> list[float] | None:
    if place is None or not place.exists():
        return None
    found = read_sealed(place)
    told = Fields({"scores": found} if isinstance(found, list) else found, str(place))  # a bare list is an older one
    return list(told.many("scores", float) or ())
