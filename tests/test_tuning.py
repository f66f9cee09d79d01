"""Tuning: all of the search is paid for, nothing but the best trial is seen, and a killed search goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from typer.testing import CliRunner

import reticent as rt
from reticent.accounting import BestTrial, Composed, Gaussian, Ledger, price
from reticent.accounting.selection import draw_trials
from reticent.cli import app
from reticent.errors import BudgetSpent, ModelError, ResumeError, SettingError
from reticent.inside import Everyone, Randomness, RightAnswers, RoundSettings, as_store
from reticent.tuning import search as searching
from reticent.tuning.judges import PrivateJudges
from reticent.tuning.trials import Trials

GENERATOR = torch.Generator().manual_seed(0)
X = torch.randn(500, 4, generator=GENERATOR)
Y = (X.sum(1) > 0).long()
TRAIN, JUDGES = (X[:400], Y[:400]), (X[400:], Y[400:])
CHOICES = [{"lr": 1e-6}, {"lr": 1.0}]


def search(**changes: Any) -> rt.Tuned:
    given: dict[str, Any] = {
        "judges": JUDGES, "choices": CHOICES, "epsilon": 4.0, "epochs": 1, "batch_size": 100, "trials": 3, "seed": 6,
    }  # fmt: skip
    return rt.tune(lambda: nn.Linear(4, 2), TRAIN, **(given | changes))


@pytest.mark.parametrize("public", [True, False])
def test_the_ledger_costs_what_the_guarantee_says(tmp_path: Path, public: bool) -> None:
    tuned = search(folder=tmp_path, judges_are_public=public)
    guarantee = tuned.trained.guarantee
    (entry,) = Ledger(tmp_path / "ledger.jsonl")
    assert price([entry.event], guarantee.delta).epsilon == guarantee.epsilon <= 4.0
    assert guarantee.status == "proved"
    assert isinstance(entry.event, BestTrial)
    assert isinstance(entry.event.trial, Composed)
    assert (Gaussian(10.0) in entry.event.trial.parts) != public, "private judges are part of every trial's cost"
    assert tuned.cost["noise_multiplier"] > tuned.cost["noise_without_tuning"]
    assert tuned.cost["epsilon_of_one_trial"] < guarantee.epsilon


def test_the_better_choice_is_found_and_can_be_loaded(tmp_path: Path) -> None:
    tuned = search(folder=tmp_path, judges_are_public=True)
    assert tuned.settings["lr"] == 1.0
    assert tuned.trained.evaluate(*JUDGES)["accuracy"] == tuned.score > 0.7
    again = rt.load(tmp_path, nn.Linear(4, 2))
    assert again.guarantee == tuned.trained.guarantee


def test_how_many_trials_there_were_is_not_to_be_seen(tmp_path: Path) -> None:
    """The guarantee holds for what is released: neither the number of trials nor the others' models."""
    search(folder=tmp_path)
    assert not (tmp_path / "trials").exists()
    tree = searching.Folder(tmp_path, resume=True, seconds=0.0).read() or {}
    assert set(tree) == {"settings", "run", "best", "score", "ledger", "over"}
    told = json.loads((tmp_path / "card.json").read_text())
    assert "how many trials there were" in told["guarantee"]["excludes"][0]


class Branches(nn.Linear):
    """Takes the general path, which is told of."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x if x.sum() < 1e9 else -x)


def test_the_log_does_not_count_the_trials(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "draw_trials", lambda *_: 3)
    rt.tune(
        lambda: Branches(4, 2), TRAIN, judges=JUDGES, choices=CHOICES, epsilon=4.0, epochs=1, batch_size=100, seed=6
    )
    assert caplog.text.count("takes the general path") == 1


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("seed", [6, None])
def test_a_killed_search_is_charged_in_full_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int | None
) -> None:
    monkeypatch.setattr(searching, "draw_trials", lambda *_: 4)
    whole = search(judges_are_public=True) if seed is not None else None
    ran: list[int] = []
    run = Trials.run

    def killed(self: Trials, *given: Any) -> nn.Module:
        ran.append(1)
        if len(ran) == 2:
            raise Killed
        return run(self, *given)

    monkeypatch.setattr(Trials, "run", killed)
    with pytest.raises(Killed):
        search(folder=tmp_path, judges_are_public=True, seed=seed)
    (entry,) = Ledger(tmp_path / "ledger.jsonl")
    assert 3.9 < price([entry.event], 1e-5).epsilon <= 4.0
    tuned = search(folder=tmp_path, judges_are_public=True, seed=seed, resume=True)
    assert len(ran) == 2 + 3, "one trial was done, one was begun, and three were left"
    assert len(Ledger(tmp_path / "ledger.jsonl")) == 1
    assert tuned.trained.guarantee.epsilon == price([entry.event], 1e-5).epsilon
    assert whole is None or (tuned.settings, tuned.score) == (whole.settings, whole.score)
    once_more = search(folder=tmp_path, judges_are_public=True, seed=seed, resume=True)
    assert (len(ran), once_more.score) == (5, tuned.score), "a finished search is only read"


def test_the_number_of_trials_is_drawn_before_and_is_the_same_after_a_crash() -> None:
    drawn = {draw_trials(float(Randomness.from_seed(3).stream(0, "trials").random()), 0.0, 0.1) for _ in range(3)}
    assert len(drawn) == 1


def test_a_search_does_not_go_on_with_other_choices_or_judges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: Any) -> nn.Module:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(Trials, "run", killed)
        with pytest.raises(Killed):
            search(folder=tmp_path)
    with pytest.raises(ResumeError, match="choices"):
        search(folder=tmp_path, resume=True, choices=[{"lr": 2.0}])
    with pytest.raises(ResumeError, match="judges"):
        search(folder=tmp_path, resume=True, judges=(JUDGES[0] + 1, JUDGES[1]))
    with pytest.raises(ResumeError, match="holds a run already"):
        search(folder=tmp_path)


def test_a_dataset_is_charged_for_the_whole_search_before_it_begins(tmp_path: Path) -> None:
    budget = rt.DatasetLedger(tmp_path / "budget.db").create("patients", epsilon=6.0, delta=1e-5)
    with pytest.raises(SettingError, match="seed"):
        search(dataset=budget)
    declared: dict[str, Any] = {"dataset": budget, "seed": None, "size": 400, "judges_are_public": True}
    tuned = search(**declared, folder=tmp_path / "run")
    (charge,) = budget.history()
    assert charge.spending.events == tuned.trained.spending.events
    assert "patients" in tuned.trained.guarantee.covers[-1]
    with pytest.raises(BudgetSpent):
        search(**declared)
    with pytest.raises(SettingError, match="public ones"):
        search(**(declared | {"judges_are_public": False}))


def test_the_card_can_be_verified_and_trained_on(tmp_path: Path) -> None:
    tuned = search(folder=tmp_path)
    assert rt.verify(tmp_path).wrong == []
    (event,) = tuned.trained.spending.events
    more = rt.fit(tuned.trained.model, TRAIN, epsilon=6.0, epochs=1, initial=tuned.trained, seed=0)
    assert event in more.spending.events
    assert 4.0 < more.guarantee.epsilon <= 6.0


def test_a_private_score_passes_the_door_with_noise() -> None:
    judges = PrivateJudges(as_store(JUDGES), noise_multiplier=5.0)
    scores = {judges.score(nn.Linear(4, 2), trial, Randomness.from_seed(0)) for trial in range(5)}
    assert len(scores) == 5
    model, randomness = nn.Linear(4, 2), Randomness.from_seed(0)
    found = torch.tensor([100 * judges.score(model, trial, randomness) for trial in range(100)], dtype=torch.double)
    exact = 100 * rt.Trained(model, rt.Guarantee("none", 1.0, 0.1), 0, 0).evaluate(*JUDGES)["accuracy"]
    assert 3.8 < found.std() < 6.2
    assert abs(found.mean() - exact) < 5 * 5.0 / 100**0.5


class Centred(nn.Linear):
    """Centres what it is given, when it is not trained."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x if self.training else x - x.mean(0))


def test_one_private_judge_changes_the_count_by_one_whatever_a_model_does_with_batches() -> None:
    model, far = Centred(4, 2), X[400:].clone()
    far[0] += 1e4
    counts = [sealed_count(model, (x, Y[400:])) for x in (X[400:], far)]
    assert abs(counts[0] - counts[1]) <= 1


def test_a_private_judge_that_cannot_be_answered_counts_for_nothing() -> None:
    words, label = torch.tensor([[0], [1], [99]]), torch.zeros(3, dtype=torch.long)
    model = nn.Sequential(nn.Embedding(2, 2), nn.Flatten())
    with torch.no_grad():
        model[0].weight.copy_(torch.tensor([[1.0, 0.0], [1.0, 0.0]]))
    assert sealed_count(model, (words, label)) == 2


def sealed_count(model: nn.Module, judges: tuple[torch.Tensor, torch.Tensor]) -> float:
    vault = PrivateJudges(as_store(judges), noise_multiplier=5.0)._vault(Randomness.from_seed(0), model)
    draw = vault.draw(Everyone(), RoundSettings(len(judges[1]), len(judges[1]), 1.0, 5.0))
    return float(vault.ask(RightAnswers(model), draw)._value)


class Keeps(nn.Linear):
    """Keeps the first row that it answers."""

    def __init__(self) -> None:
        super().__init__(4, 2)
        self.register_buffer("seen", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.training:
            self.seen.copy_(x[0])
        return super().forward(x)


def test_what_a_model_keeps_of_private_judges_is_found_before_anything_is_charged(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="keeps something"):
        rt.tune(Keeps, TRAIN, judges=JUDGES, epsilon=4.0, epochs=1, batch_size=100, folder=tmp_path)
    assert not (tmp_path / "ledger.jsonl").exists()


def test_what_would_change_the_price_of_a_trial_cannot_be_tried() -> None:
    for choice in ({"noise_multiplier": 1.0}, {"batch_size": 10.0}, {"epochs": 2.0}):
        with pytest.raises(SettingError, match="cannot differ from trial to trial"):
            search(choices=[choice])
    with pytest.raises(SettingError, match="finds the noise"):
        search(method="dpsgd", noise_multiplier=1.0)
    with pytest.raises(SettingError, match="finds the noise"):
        search(method="dpis")
    with pytest.raises(SettingError, match="nothing to choose from"):
        search(choices=[])


def test_every_trial_releases_just_what_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """The events of a run, whichever choice it has, are those of the trial that is priced."""
    seen = []
    run = Trials.run

    def watched(self: Trials, *given: Any) -> nn.Module:
        monkeypatch.setattr("reticent.tuning.trials.Run", Watched)
        return run(self, *given)

    class Watched(rt.Run):
        def __iter__(self) -> Any:
            yield from super().__iter__()
            seen.append(self.ledger.tally())

    monkeypatch.setattr(Trials, "run", watched)
    tuned = search(judges_are_public=True, choices=[{"max_grad_norm": 0.1}, {"average_last": 0.5, "lr": 2.0}])
    assert seen
    assert all(tally == seen[0] for tally in seen)
    delta = tuned.trained.guarantee.delta
    assert price(seen[0], delta, accountant="rdp").epsilon == tuned.cost["epsilon_of_one_trial"]


@pytest.mark.parametrize("eta", [-1.0, float("inf"), float("nan")])
def test_a_law_that_is_none_is_refused(eta: float) -> None:
    with pytest.raises(SettingError, match="eta is"):
        search(eta=eta)


def test_public_examples_must_be_declared_public() -> None:
    given: dict[str, Any] = {"public": JUDGES, "epsilon": 4.0, "epochs": 1, "seed": 0, "choices": CHOICES}
    with pytest.raises(SettingError, match="public_is_public=True"):
        rt.tune_on_public(lambda: nn.Linear(4, 2), TRAIN, **given)
    tuned = rt.tune_on_public(lambda: nn.Linear(4, 2), TRAIN, public_is_public=True, **given)
    plain = rt.fit(nn.Linear(4, 2), TRAIN, epsilon=4.0, epochs=1, lr=tuned.settings["lr"], seed=0)
    assert tuned.trained.guarantee == plain.guarantee, "only the last run costs anything"


def test_a_search_on_public_examples_goes_on_with_what_it_chose(tmp_path: Path) -> None:
    (tmp_path / "rehearsal.json").write_text("[1.0, 0.0]")
    given: dict[str, Any] = {"public": JUDGES, "public_is_public": True, "epsilon": 4.0, "epochs": 1, "seed": 0}
    tuned = rt.tune_on_public(lambda: nn.Linear(4, 2), TRAIN, choices=CHOICES, folder=tmp_path, resume=True, **given)
    assert tuned.settings == CHOICES[0]


def ask(*words: str) -> Any:
    done = CliRunner().invoke(app, [*words, "--json"], catch_exceptions=False)
    return json.loads(done.stdout)


def test_the_command_tells_what_it_cost(tmp_path: Path) -> None:
    words = ["tune", "--data", "digits", "--epsilon", "3", "--aside", "200", "--trials", "1.5", "--seed", "0"]
    words += ["--set", "epochs=1", "--set", "batch_size=300", "--try", "lr=0.3,0.6", "--out", str(tmp_path)]
    answer = ask(*words)
    assert answer["guarantee"]["epsilon"] <= 3.0
    assert answer["tuned"]["cost"]["noise_without_tuning"] < answer["noise_multiplier"]
    assert answer["tuned"]["settings"]["lr"] in (0.3, 0.6)
    assert json.loads((tmp_path / "result.json").read_text())["examples"] == 1237, "judges are not learned from"
    told = CliRunner().invoke(app, [*words, "--resume"], catch_exceptions=False).output
    assert "cost       noise multiplier" in told
    for unused in ("lr_schedule=cosine", "curve=3", "private_diagnostics=true"):
        with pytest.raises(SettingError, match="would go on without"):
            ask(*words[:11], "--set", unused)
    with pytest.raises(SettingError, match="does not know judge_on_test"):
        ask(*words[:11], "--method", "sa_dpsgd", "--set", "judge_on_test=true")
    with pytest.raises(SettingError, match="public_is_public"):
        ask("tune", "--data", "digits", "--epsilon", "3", "--aside", "200", "--on-public")


class Named(nn.Module):
    """Takes a dict of columns."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Both classes."""
        return self.layer(x)


def test_examples_come_in_all_the_forms_that_fit_takes() -> None:
    double = (TRAIN[0].double().numpy(), TRAIN[1].int().numpy())
    judges = (JUDGES[0].double().numpy(), JUDGES[1].numpy())
    said: dict[str, Any] = {
        "epsilon": 4.0,
        "epochs": 1,
        "batch_size": 100,
        "trials": 1.5,
        "seed": 6,
        "choices": CHOICES,
    }
    rt.tune(lambda: nn.Linear(4, 2), double, judges=judges, **said)
    named = {"x": TRAIN[0], "labels": TRAIN[1]}
    public = {"x": JUDGES[0], "labels": JUDGES[1]}
    rt.tune(Named, named, judges=public, judges_are_public=True, **said)
    with pytest.raises(SettingError, match="private judges count the right answers"):
        rt.tune(Named, named, judges=public, **said)


def test_numbers_are_tuned_for_on_public_judges() -> None:
    target = X @ torch.tensor([1.0, -1.0, 0.5, 0.0])
    data, judges = (X[:400], target[:400]), (X[400:], target[400:])
    said: dict[str, Any] = {"epsilon": 8.0, "epochs": 2, "trials": 1.5, "seed": 6, "choices": [{"lr": 0.1}]}
    tuned = rt.tune(lambda: nn.Linear(4, 1), data, judges=judges, judges_are_public=True, **said)
    assert tuned.score == tuned.trained.evaluate(*judges)["r2"]
    with pytest.raises(SettingError, match="private judges count the right answers"):
        rt.tune(lambda: nn.Linear(4, 1), data, judges=judges, **said)


def test_a_search_for_persons_promises_persons() -> None:
    groups = [row // 2 for row in range(400)]
    tuned = search(groups=groups, judges_are_public=True, batch_size=50)
    assert tuned.trained.guarantee.unit == tuned.trained.spending.unit == "person"
    with pytest.raises(SettingError, match="counted row by row"):
        search(groups=groups)
    from_examples = rt.data.Examples(*TRAIN, groups=torch.tensor(groups))
    said: dict[str, Any] = {"judges": JUDGES, "choices": CHOICES, "epsilon": 4.0, "epochs": 1, "trials": 1.5, "seed": 6}
    alike = rt.tune(lambda: nn.Linear(4, 2), from_examples, judges_are_public=True, **said)
    assert alike.trained.guarantee.unit == "person"


ONE = nn.Linear(4, 2)


@pytest.mark.parametrize(
    ("make", "choices", "says"),
    [
        (lambda: ONE, CHOICES, "the same one, or the same layers"),
        (lambda: nn.Sequential(ONE, nn.Linear(2, 2)), CHOICES, "the same one, or the same layers"),
        (nn.Linear, CHOICES, "such as lambda"),
        (ONE, CHOICES, "not a Linear"),
        (lambda: 3, CHOICES, "gives a int"),
        (lambda: nn.Linear(4, 2), [{"lr": "a"}], "lr must be a number"),
        (lambda: nn.Linear(4, 2), [{"lr": 1.0}, {"momentum": 1.5}], "momentum must be a number from 0 to 1"),
        (lambda: nn.Linear(4, 2), [{"max_grad_norm": -1.0}], "max_grad_norm must be a number"),
        (lambda: nn.Linear(4, 2), {"lr": 1.0}, "a list of settings"),
    ],
)
def test_what_cannot_be_tried_is_refused_before_anything_is_charged(
    tmp_path: Path, make: Any, choices: Any, says: str
) -> None:
    budget = rt.DatasetLedger(tmp_path / "budget.db").create("patients", epsilon=6.0, delta=1e-5)
    with pytest.raises(SettingError, match=says):
        rt.tune(
            make, TRAIN, judges=JUDGES, judges_are_public=True, choices=choices, epsilon=4.0, size=400, dataset=budget
        )
    assert budget.history() == []


def test_a_search_that_was_killed_can_be_settled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: Any) -> nn.Module:
        raise Killed

    ledger = rt.DatasetLedger(tmp_path / "budget.db")
    budget, said = ledger.create("patients", epsilon=6.0, delta=1e-5), {"seed": None, "size": 400}
    monkeypatch.setattr(Trials, "run", killed)
    with pytest.raises(Killed):
        search(dataset=budget, judges_are_public=True, folder=tmp_path / "run", **said)
    _, charge = ledger.settle(tmp_path / "run")
    assert charge.state == "settled"
    assert charge.used == charge.planned, "a search is charged whole from its first trial on"
    (tmp_path / "run" / "ledger.jsonl").write_text("")
    with pytest.raises(ResumeError, match="the ledger holds 0 releases"):
        ledger.settle(tmp_path / "run")


def test_rehearsals_are_told_what_the_last_run_is(monkeypatch: pytest.MonkeyPatch) -> None:
    from reticent.tuning import public

    told: list[dict[str, Any]] = []
    plain = public.fit

    def watched(*given: Any, **said: Any) -> rt.Trained:
        told.append(said)
        return plain(*given, **said)

    monkeypatch.setattr(public, "fit", watched)
    given: dict[str, Any] = {"public": JUDGES, "public_is_public": True, "epsilon": 4.0, "epochs": 1, "seed": 0}
    groups = [row // 2 for row in range(400)]
    tuned = rt.tune_on_public(
        lambda: nn.Linear(4, 2), TRAIN, choices=CHOICES, loss="multi_margin", groups=groups, **given
    )
    assert [said["loss"] for said in told] == ["multi_margin"] * 3
    assert ["groups" in said for said in told] == [False, False, True]
    assert tuned.trained.guarantee.unit == "person"
