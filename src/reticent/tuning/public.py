"""Tuning on public examples: the search sees no private one, so that only the last run costs anything."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from reticent.accounting import Budget
from reticent.checkpoint import make_folder, replace_file
from reticent.errors import SettingError
from reticent.evaluating import accuracy
from reticent.fitting import fit
from reticent.inside import as_store
from reticent.methods import Method, get
from reticent.methods.planning import default_delta
from reticent.settling import settle
from reticent.trained import Trained
from reticent.tuning.choices import Choice, check, usual
from reticent.tuning.tuned import Tuned

REHEARSAL = "rehearsal.json"
"""The scores of the choices: a run that is resumed must not choose anew."""
JUDGES = 5
"""One in so many public examples judges, the others are learned from."""


def tune_on_public(
    make: Callable[[], nn.Module],
    examples: Any,
    *,
    public: tuple[Any, Any],
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
    **settings: Any,
) -> Tuned:
    """Try every choice on examples that were declared public, then train once on the private ones.

    Their privacy is given up, which must be said with `public_is_public=True`. Where no choices are said, multiples of
    the rule's step are tried, which suit a smaller and a larger number of examples alike.

    >>> x, y = torch.randn(400, 4), torch.randint(0, 2, (400,))
    >>> found = tune_on_public(lambda: nn.Linear(4, 2), (x[:200], y[:200]), public=(x[200:], y[200:]),
    ...                        public_is_public=True, choices=[{"lr": 0.1}, {"lr": 1.0}], epsilon=4.0, epochs=1, seed=0)
    >>> found.trained.guarantee.epsilon <= 4.0
    True
    """
    if not public_is_public:
        raise SettingError(
            "the public examples are looked at without noise, so that they get no privacy at all: say "
            "public_is_public=True if they are public, or let private ones judge (tune)"
        )
    x, y = (torch.as_tensor(part) for part in public)
    cut = len(y) // JUDGES
    method = get(method) if isinstance(method, str) else method
    private = len(as_store(examples)) if size is None else size
    delta = default_delta(private) if delta is None else delta

    def listed(count: int) -> tuple[dict[str, float], ...]:
        """The choices for so many examples."""
        said = {"batch_size": batch_size, "epochs": epochs}
        rule = settle(said, make(), method, size=count, budget=Budget(epsilon, delta)).settings
        return check(usual(rule) if choices is None else choices)

    def trained(data: Any, choice: Choice, declared: int | None, **more: Any) -> Trained:
        rest: dict[str, Any] = {name: value for name, value in choice.items() if name != "max_grad_norm"}
        own = replace(method, max_grad_norm=choice.get("max_grad_norm", method.max_grad_norm))
        with torch.random.fork_rng(devices=[]):
            if seed is not None:
                torch.manual_seed(seed)
            model = make()
        rest |= {"epsilon": epsilon, "delta": delta, "batch_size": batch_size, "epochs": epochs, "seed": seed}
        return fit(model, data, method=own, size=declared, **rest, **more)

    place = None if folder is None else Path(folder) / REHEARSAL
    rehearsed = _stored(place) if resume else None
    if rehearsed is None:
        rehearsal = (x[cut:], y[cut:])
        rehearsed = [
            accuracy(trained(rehearsal, choice, None).model, x[:cut], y[:cut]) for choice in listed(len(y) - cut)
        ]
        if place is not None:
            make_folder(place.parent)
            replace_file(place, json.dumps(rehearsed).encode())
    best = max(range(len(rehearsed)), key=rehearsed.__getitem__)
    choice = listed(private)[best]
    found = trained(examples, choice, size, folder=folder, resume=resume, **settings)
    tuned = Tuned(found, choice, rehearsed[best], f"{cut} examples declared public", {"epsilon": 0.0})
    return replace(tuned, trained=replace(found, about={**found.about, **tuned.about()}))


def _stored(place: Path | None) -> list[float] | None:
    return json.loads(place.read_text()) if place is not None and place.exists() else None
