"""Tuning on private examples: a random number of trials, of which the best is released and all are paid for."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn

from reticent.accounting import BestTrial, Budget, Entry, Event, Guarantee, Ledger, Mark, Spending, calibrate, price
from reticent.accounting.adjacency import adjacency_of
from reticent.accounting.selection import LOGARITHMIC, draw_trials, gamma_for
from reticent.budgets import DatasetBudget
from reticent.budgets.reserving import Reservation
from reticent.certificate import Charged
from reticent.checkpoint import Folder, refuse_changes
from reticent.errors import SettingError
from reticent.inside import Randomness, as_store
from reticent.losses import LossLike, cross_entropy
from reticent.methods import Method, get, plan
from reticent.methods.planning import default_delta
from reticent.methods.solving import rounds_in
from reticent.origins import mark
from reticent.settling import settle
from reticent.trained import Trained, load
from reticent.tuning.choices import Choice, check, usual
from reticent.tuning.trials import Judges, PrivateJudges, PublicJudges, Trials
from reticent.tuning.tuned import Tuned

EXPECTED = 8.0
SCORE_NOISE = 10.0
"""Right answers, more or less: little beside the noise of training."""
EXCLUDES = (
    "how many trials there were and how long they took: keep both to yourself, as the folder of a search at work",
    "choices made by looking at the data before the search (what to choose from, preprocessing)",
)


def tune(
    make: Callable[[], nn.Module],
    examples: Any,
    *,
    judges: tuple[Any, Any],
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
    loss: LossLike = cross_entropy,
    seed: int | None = None,
    max_physical_batch_size: int | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
    dataset: DatasetBudget | None = None,
    **options: Any,
) -> Tuned:
    """Train about `trials` models, each with settings drawn from the choices, and release the best of them.

    The budget covers the whole search (Papernot & Steinke 2022, theorem 2): the number of trials is drawn beforehand
    and stays secret, and so does every model but the best. `judges` score a trial: examples that are public, which
    must be said with `judges_are_public=True`, or private ones, which none of the examples must be: then a noisy count
    of right answers is part of every trial's cost. `dataset` is charged for the whole search before it begins.

    >>> import torch
    >>> x, y = torch.randn(400, 4), torch.randint(0, 2, (400,))
    >>> found = tune(lambda: nn.Linear(4, 2), (x[:300], y[:300]), judges=(x[300:], y[300:]), epsilon=4.0, epochs=1,
    ...              batch_size=100, trials=2, seed=0)
    >>> found.trained.guarantee.epsilon <= 4.0, sorted(found.settings)
    (True, ['average_last', 'lr', 'max_grad_norm', 'momentum'])
    """
    public = len(as_store(examples)) if size is None else size
    if options and not isinstance(method, str):
        raise SettingError(f"options {sorted(options)} go with a method's name; a Method carries its own")
    chosen = get(method, **options) if isinstance(method, str) else method
    refuse_unfit(chosen)
    if size is not None and not judges_are_public:
        raise SettingError("how many private judges there are is public: with a declared size, take public ones")
    budget = Budget(
        epsilon, default_delta(public) if delta is None else delta, "rdp", adjacency=adjacency_of(size, adjacency)
    )
    rule = settle({"batch_size": batch_size, "epochs": epochs}, make(), chosen, size=public, budget=budget).settings
    shared = Trials(
        make=make,
        examples=examples,
        method=chosen,
        size=public,
        declared=size,
        adjacency=adjacency,
        loss=loss,
        batch_size=rule.batch_size,
        rounds=rounds_in(rule.epochs, public, rule.batch_size),
        delta=budget.delta,
        max_physical_batch_size=max_physical_batch_size,
    )
    search = Search(
        shared,
        check(usual(rule) if choices is None else choices),
        {name: getattr(rule, name) for name in ("lr", "momentum", "average_last")}
        | {"max_grad_norm": chosen.max_grad_norm},
        PublicJudges(*judges) if judges_are_public else PrivateJudges(*judges, score_noise),
        budget,
        eta=eta,
        gamma=gamma_for(trials, eta),
    )
    return search.go(seed, None if folder is None else Path(folder), resume=resume, dataset=dataset)


def refuse_unfit(method: Method) -> None:
    """Refuse methods whose trials would not all cost the same, known before the first."""
    if method.adaptive is not None or method.noise_multiplier is not None:
        raise SettingError(f"tuning finds the noise of {method.name} itself, once for all trials: say no noise of it")


class Search:
    """A search: planned, charged before its first trial, and resumable."""

    def __init__(
        self,
        trials: Trials,
        choices: tuple[dict[str, float], ...],
        settings: dict[str, float],
        judges: Judges,
        budget: Budget,
        *,
        eta: float,
        gamma: float,
    ):
        self.trials, self.choices, self.settings, self.judges, self.budget = trials, choices, settings, judges, budget
        self.eta, self.gamma = eta, gamma
        self.noise = calibrate.least_noise(lambda noise: {self._event(noise): 1}, budget)
        self.event = self._event(self.noise)

    def _event(self, noise: float) -> BestTrial:
        return BestTrial(self.trials.event(noise, self.judges.events), self.eta, self.gamma)

    def go(self, seed: int | None, path: Path | None, *, resume: bool, dataset: DatasetBudget | None) -> Tuned:
        """Do all trials, or those that a crash left; keep the best one only."""
        folder = Folder(path, resume=resume, seconds=0.0) if path is not None else None
        stored = folder.read() if folder is not None else None
        if stored is not None:
            refuse_changes(stored["settings"], self._describe(seed))
        if stored is not None and stored["over"]:
            return self._tuned(load(path or "", self.trials.make()), stored["best"], stored["score"])
        randomness = Randomness.from_seed(seed) if seed is not None else Randomness.fresh()
        if stored is not None:
            randomness = Randomness.from_state(stored["randomness"])
        state: dict[str, Any] = {
            "settings": self._describe(seed),
            "over": False,
            "randomness": randomness.state(),
            "judges": self.judges.fingerprint(randomness),
            "done": 0,
            "best": None,
            "score": None,
            "model": None,
        }
        if stored is not None:
            refuse_changes({"judges": stored["judges"]}, {"judges": state["judges"]})
            state = stored
        place = None if dataset is None else Reservation(dataset, path, seeded=seed is not None)
        if place is not None:
            place.make(self.spending, Spending(), f"tune {self.trials.method.name}", resumed=stored is not None)
        if folder is not None:
            folder.write(state)  # the key must be on disk before anything is made with it
        if place is not None:
            place.begin()
        # Charged for the whole search before its first trial: one that is killed has cost as much as one that ends.
        ledger = Ledger(folder.ledger if folder is not None else None)
        ledger.record(Entry(0, 0, self.event, randomness.seal(b"tuning")))
        count = draw_trials(float(randomness.stream(0, "trials").random()), self.eta, self.gamma)
        for number in range(state["done"], count):
            _forget(path, but=number)  # of trials that are done only the best is kept, and that in the state
            self._try(number, state, randomness, path)
            if folder is not None:
                folder.write(state)
        _forget(path)
        promised = self.guarantee(seeded=randomness.seeded)
        return self._finish(state, folder, path, ledger.mark(), promised if place is None else place.stated(promised))

    def _try(self, number: int, state: dict[str, Any], randomness: Randomness, path: Path | None) -> None:
        drawn = randomness.stream(number, "choice")
        choice = int(drawn.integers(len(self.choices)))
        seed = int(drawn.integers(2**62)) if randomness.seeded else None
        place = None if path is None else path / "trials" / str(number)
        model = self.trials.run({**self.settings, **self.choices[choice]}, self.noise, seed, place)
        score = self.judges.score(model, number, randomness)
        if state["best"] is None or score > state["score"]:
            state |= {"best": choice, "score": score, "model": dict(model.state_dict())}
        state["done"] = number + 1

    @property
    def spending(self) -> Spending:
        """All that the search may release."""
        return Spending({self.event: 1}, declared=self.trials.declared is not None)

    def _finish(
        self, state: dict[str, Any], folder: Folder | None, path: Path | None, ended: Mark, promised: Guarantee
    ) -> Tuned:
        model = self.trials.make()
        model.load_state_dict(state["model"])
        mark(model, self.spending, everything=True)
        spent: dict[Event, int] = {self.event: 1}
        trained = Trained(
            model,
            promised,
            self.trials.rounds,
            self.trials.rounds,
            charged=Charged(planned=spent, released=spent, ledger=ended, accountant="rdp"),
            spending=self.spending,
        )
        tuned = self._tuned(trained, state["best"], state["score"])
        if folder is not None and path is not None:
            tuned.trained.save(path)
            # Without the key, which would tell how many trials there were.
            folder.write({name: state[name] for name in ("settings", "best", "score")} | {"over": True})
            folder.release()
        return tuned

    def guarantee(self, *, seeded: bool) -> Guarantee:
        """What is proved of the model that is released, with its settings and its score."""
        cost = price([self.event], self.budget.delta, accountant="rdp", adjacency=self.budget.adjacency)
        one = plan(
            replace(self.trials.method, noise_multiplier=self.noise),
            size=self.trials.size,
            batch_size=self.trials.batch_size,
            rounds=self.trials.rounds,
            delta=self.budget.delta,
            adjacency=self.budget.adjacency,
        ).guarantee(seeded=seeded, assumes=tuple(getattr(self.trials.examples, "assumes", ())))
        return Guarantee.of(
            cost,
            route="best_trial",
            covers=("the model that is released, its settings and its score",),
            excludes=(*EXCLUDES, "timing side channels"),
            assumptions=(*one.assumptions, "the number of trials was drawn by its law and nobody learns it"),
            seeded=seeded,
        )

    def cost(self) -> dict[str, float]:
        """What the search took: noise with and without it, and the epsilon of one trial by itself."""
        single = calibrate.least_noise(lambda noise: {self.trials.event(noise, ()): 1}, self.budget)
        one = price([self.event.trial], self.budget.delta, accountant="rdp", adjacency=self.budget.adjacency)
        return {"noise_multiplier": self.noise, "noise_without_tuning": single, "epsilon_of_one_trial": one.epsilon}

    def _tuned(self, trained: Trained, choice: int, score: float) -> Tuned:
        settings = {**self.settings, **self.choices[choice]}
        tuned = Tuned(trained, settings, score, self.judges.words, self.cost())
        return replace(tuned, trained=replace(trained, about=tuned.about()))

    def _describe(self, seed: int | None) -> dict[str, Any]:
        return {
            "event": repr(self.event),
            "choices": repr(self.choices),
            "settings": repr(sorted(self.settings.items())),
            "method": repr(self.trials.method),
            "judges": self.judges.words,
            "adjacency": self.budget.adjacency,
            "seed": seed,
        }


def _forget(path: Path | None, but: int | None = None) -> None:
    """Delete the folders of all trials but this one: what is not the best must not be seen, nor how many there were."""
    for place in (path / "trials").glob("*") if path is not None else ():
        if place.name != str(but):
            shutil.rmtree(place)
    if path is not None and but is None:
        shutil.rmtree(path / "trials", ignore_errors=True)
