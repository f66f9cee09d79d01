"""The search: planned and checked, then charged, then tried; a crash loses nothing and hides nothing."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from torch import nn

from reticent.accounting import BestTrial, Budget, Entry, Event, Guarantee, Ledger, Mark, Spending, calibrate, price
from reticent.accounting.lineage import Lineage
from reticent.accounting.selection import draw_trials
from reticent.budgets import DatasetBudget
from reticent.budgets.reserving import Reservation
from reticent.certificate import Charged
from reticent.checkpoint import Folder, refuse_changes
from reticent.inside import Randomness
from reticent.inside.on_device import generator
from reticent.methods import plan
from reticent.origins import mark
from reticent.trained import Trained, load
from reticent.tuning.judges import Judges
from reticent.tuning.places import Asked, Elsewhere, trained_by
from reticent.tuning.trials import Trials, new_model
from reticent.tuning.tuned import Tuned

EXCLUDES = (
    "how many trials there were and how long they took: keep both to yourself, as the folder of a search at work",
    "choices made by looking at the data before the search (what to choose from, preprocessing)",
)


class Search:
    """A search: planned, charged before its first trial, and resumable."""

    def __init__(
        self,
        trials: Trials,
        choices: tuple[dict[str, float], ...],
        settings: dict[str, float],
        judges: Judges,
        budget: Budget,
        about: dict[str, str | None],
        *,
        eta: float,
        gamma: float,
    ):
        self.trials, self.choices, self.settings, self.judges, self.budget = trials, choices, settings, judges, budget
        self.about, self.eta, self.gamma = about, eta, gamma
        self.noise = calibrate.least_noise(lambda noise: {self._event(noise): 1}, budget)
        self.event = self._event(self.noise)
        model = trials.check({**settings, **choices[0]}, self.noise)
        judges.check(model)
        self._generator = generator(next(model.parameters()).device)

    def _event(self, noise: float) -> BestTrial:
        return BestTrial(self.trials.event(noise, self.judges.events), self.eta, self.gamma)

    def go(
        self,
        seed: int | None,
        where: str | Path | None,
        *,
        resume: bool,
        dataset: DatasetBudget | None,
        elsewhere: Elsewhere,
    ) -> Tuned:
        """Do all trials, or those that a crash left; keep the best one only."""
        path = None if where is None else Path(where)
        folder = Folder(path, resume=resume, seconds=0.0) if path is not None else None
        stored = folder.read() if folder is not None else None
        if stored is not None:
            refuse_changes(stored["settings"], self._describe(seed))
        if stored is not None and stored["over"]:
            return self._tuned(load(path or "", new_model(self.trials.make)), stored["best"], stored["score"])
        randomness = Randomness.from_seed(seed) if seed is not None else Randomness.fresh()
        if stored is not None:
            randomness = Randomness.from_state(stored["randomness"])
        state: dict[str, Any] = {
            "settings": self._describe(seed),
            "run": uuid4().hex,
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
            state |= stored
        place = None if dataset is None else Reservation(dataset, path, seeded=seed is not None)
        if place is not None:
            place.make(self.spending, Spending(), f"tune {self.trials.method.name}", resumed=stored is not None)
            state["run"] = place.run
        if folder is not None:
            folder.write(state)  # the key must be on disk before anything is made with it
        if place is not None:
            place.begin()
        # Charged for the whole search before its first trial: one that is killed has cost as much as one that ends.
        ledger = Ledger(folder.ledger if folder is not None else None)
        ledger.record(Entry(0, 0, self.event, randomness.seal(b"tuning")))
        state["ledger"] = ledger.mark().to_json()
        if folder is not None:
            folder.write(state)
        count = draw_trials(float(randomness.stream(0, "trials").random()), self.eta, self.gamma)
        _forget(path, before=state["done"])
        asked = {number: self._asked(number, randomness) for number in range(state["done"], count)}
        for number, model in trained_by(self.trials, asked, path, elsewhere):
            self._judge(number, asked[number].choice, model, state, randomness)
            if folder is not None:
                folder.write(state)
            _forget(path, before=number + 1)  # of trials that are done only the best is kept, and that in the state
        _forget(path)
        promised = self.guarantee(seeded=randomness.seeded)
        return self._finish(state, folder, path, ledger.mark(), promised if place is None else place.stated(promised))

    def _asked(self, number: int, randomness: Randomness) -> Asked:
        """What a trial is made with."""
        drawn = randomness.stream(number, "choice")
        choice = int(drawn.integers(len(self.choices)))
        seed = int(drawn.integers(2**62)) if randomness.seeded else None
        return Asked(choice, {**self.settings, **self.choices[choice]}, self.noise, seed)

    def _judge(self, number: int, choice: int, model: nn.Module, state: dict[str, Any], randomness: Randomness) -> None:
        score = self.judges.score(model, number, randomness)
        if state["best"] is None or score > state["score"]:
            state |= {"best": choice, "score": score, "model": dict(model.state_dict())}
        state["done"] = number + 1

    @property
    def spending(self) -> Spending:
        """All that the search may release."""
        return Spending({self.event: 1}, declared=self.trials.declared is not None, unit=self.trials.unit)

    def _finish(
        self, state: dict[str, Any], folder: Folder | None, path: Path | None, ended: Mark, promised: Guarantee
    ) -> Tuned:
        model, lineage = new_model(self.trials.make), Lineage({state["run"]: self.spending})
        model.load_state_dict(state["model"])
        mark(model, lineage, everything=True)
        spent: dict[Event, int] = {self.event: 1}
        trained = Trained(
            model,
            promised,
            self.trials.rounds,
            self.trials.rounds,
            charged=Charged(planned=spent, released=spent, ledger=ended, accountant="rdp"),
            preprocessing=getattr(self.trials.examples, "preprocessing", None),
            lineage=lineage,
        )
        tuned = self._tuned(trained, state["best"], state["score"])
        if folder is not None and path is not None:
            tuned.trained.save(path)
            # Without the key, which would tell how many trials there were.
            folder.write(
                {name: state[name] for name in ("settings", "run", "best", "score", "ledger")} | {"over": True}
            )
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
            unit=self.trials.unit,
        ).guarantee(
            seeded=seeded, generator=self._generator, assumes=tuple(getattr(self.trials.examples, "assumes", ()))
        )
        return Guarantee.of(
            cost,
            route="best_trial",
            covers=("the model that is released, its settings and its score",),
            excludes=(*EXCLUDES, "timing side channels"),
            assumptions=(*one.assumptions, "the number of trials was drawn by its law and nobody learns it"),
            seeded=seeded,
            unit=self.trials.unit,
        )

    def cost(self) -> dict[str, float]:
        """What the search took: noise with and without it, and the epsilon of one trial by itself."""
        single = calibrate.least_noise(lambda noise: {self.trials.event(noise, ()): 1}, self.budget)
        one = price([self.event.trial], self.budget.delta, accountant="rdp", adjacency=self.budget.adjacency)
        return {"noise_multiplier": self.noise, "noise_without_tuning": single, "epsilon_of_one_trial": one.epsilon}

    def _tuned(self, trained: Trained, choice: int, score: float) -> Tuned:
        settings = {**self.settings, **self.choices[choice]}
        tuned = Tuned(trained, settings, score, self.judges.words, self.cost())
        return replace(tuned, trained=replace(trained, about={**tuned.about(), "loss": self.about}))

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


def _forget(path: Path | None, before: int | None = None) -> None:
    """Delete the folders of trials before this one: what is not the best must not be seen, nor how many there were."""
    for place in (path / "trials").glob("*") if path is not None else ():
        if before is None or int(place.name) < before:
            shutil.rmtree(place)
    if path is not None and before is None:
        shutil.rmtree(path / "trials", ignore_errors=True)
