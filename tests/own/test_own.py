"""One's own model, from Python: its folder, its page, its attack, its audit, and what none of them may hold."""

from __future__ import annotations

import json
import pickle
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import reticent as rt
from reticent.budgets import DatasetLedger
from reticent.data import Examples
from reticent.errors import DataError, SettingError
from reticent.experiments.own import own_run
from reticent.results import read_result
from reticent.trained import Trained

pytestmark = pytest.mark.usefixtures("one_probe")
FEW: dict[str, Any] = {"shadows": 4, "records": 40, "attacks": ["loss", "lira"]}


def test_the_folder_of_a_fit_holds_a_result_like_any_other(mine: Any, tmp_path: Path) -> None:
    trained = mine.fit(tmp_path / "a")
    result = read_result(tmp_path / "a")
    assert result.guarantee == trained.guarantee
    assert (result.title, result.class_names) == ("Visits", ("stays", "leaves", "returns"))
    assert result.examples == 150
    assert result.accuracy == pytest.approx(trained.evaluate(*mine.test)["accuracy"])
    assert result.commonest == pytest.approx(1 / 3)
    assert result.confusion is not None
    assert [sum(row) for row in result.confusion] == [30, 30, 30]
    assert result.learning is not None
    assert result.learning.points[-1] == (trained.rounds, pytest.approx(trained.evaluate(*mine.validation)["accuracy"]))
    assert result.epsilon_by_round is not None
    assert result.epsilon_by_round[-1][1] == pytest.approx(trained.guarantee.epsilon)
    assert result.beyond == ("data", "model")
    assert rt.load(tmp_path / "a", trained.model).report(tmp_path / "p.html").exists()


def test_a_fit_without_a_folder_or_public_examples_is_as_it_was(mine: Any, tmp_path: Path) -> None:
    bare = {"test": None, "validation": None, "name": None, "classes": None}
    with_all, without = mine.fit(tmp_path / "a"), mine.fit(**bare)
    for one, other in zip(with_all.model.parameters(), without.model.parameters(), strict=True):
        assert torch.equal(one, other), "what is public changes nothing of the training"
    page = without.report(tmp_path / "page.html").read_text()
    assert "own data" in page
    assert "Accuracy</h2>" not in page
    with pytest.raises(SettingError, match="no test split"):
        without.attack(**FEW)


def test_bad_public_examples_are_told_before_training(mine: Any, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="test: the columns have different lengths"):
        mine.fit(tmp_path / "a", test=(torch.zeros(3, 4), torch.zeros(2)))
    assert not (tmp_path / "a").exists()


def test_nothing_private_is_kept_beside_a_model(mine: Any, tmp_path: Path) -> None:
    """A pickle, a folder and a printed model hold no training example, and not their true number."""
    trained = mine.fit(tmp_path / "a", size=160)
    trained.report()
    secret = mine.train[0].numpy().tobytes()[:16]
    assert secret not in pickle.dumps(trained)
    assert pickle.loads(pickle.dumps(trained)).call is None
    assert "tensor(" not in repr(trained)
    for file in filter(Path.is_file, (tmp_path / "a").rglob("*")):
        assert secret not in file.read_bytes(), file.name
        if file.suffix in (".json", ".jsonl"):
            assert re.search(r"(?<![\w.])150(?![\w.])", file.read_text()) is None, file.name


def test_a_run_that_crashed_keeps_its_learning_curve(mine: Any, tmp_path: Path) -> None:
    whole = mine.fit(tmp_path / "whole")

    def stop(run: rt.Run, step: rt.Step) -> None:
        if step.number == len(run) // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mine.fit(tmp_path / "a", progress=stop)
    assert not (tmp_path / "a" / "result.json").exists()
    again = mine.fit(tmp_path / "a", resume=True)
    assert again.call.learning == whole.call.learning
    assert mine.fit(tmp_path / "a", resume=True).call.learning == whole.call.learning, "a finished run too"


def test_the_same_examples_and_coins_give_the_same_model(mine: Any) -> None:
    trained: Trained = mine.fit()
    assert trained.call is not None
    again = own_run(trained, trained.call).train(Examples(*mine.train), seed=3)
    for name, part in trained.model.state_dict().items():
        assert torch.equal(part, again.model.state_dict()[name]), name


def test_an_attack_is_kept_in_the_folder_and_shown(mine: Any, tmp_path: Path) -> None:
    trained = mine.fit(tmp_path / "a")
    report = trained.attack(**FEW)
    assert report.shadows == 4
    assert (
        json.loads((tmp_path / "a" / "private" / "attack" / "attack.json").read_text())["sentence"] == report.sentence
    )
    assert report.sentence in trained.report().read_text()
    assert trained.attack(**FEW).to_json() == report.to_json(), "the shadows are kept, too"


def test_without_a_folder_attack_and_audit_are_shown_all_the_same(mine: Any, tmp_path: Path) -> None:
    trained = mine.fit()
    attacked, audited = trained.attack(**FEW), trained.audit(canaries=30, runs=20, seed=0)
    page = trained.report(tmp_path / "page.html", without_privacy=0.93).read_text()
    for said in (attacked.sentence, audited.sentence, "93.0 %"):
        assert said in page
    assert audited.verdict == "consistent"
    assert audited.name == "one run, 30 canaries"
    assert [finding.probe for finding in audited.findings][:2] == ["stored ledger", "one run"]


@pytest.mark.parametrize("kept", [True, False])
def test_an_audit_holds_the_ledger_against_the_guarantee(mine: Any, tmp_path: Path, kept: bool) -> None:
    trained = mine.fit(tmp_path / "a" if kept else None)
    boast = replace(trained, guarantee=replace(trained.guarantee, epsilon=1.0))
    found = boast.audit(canaries=0, runs=20, seed=0)
    assert found.said_by == ["stored ledger"]
    assert found.sentence == "The claim is contradicted, by stored ledger: do not rely on this guarantee."


def test_only_what_fit_returned_can_be_attacked(mine: Any, tmp_path: Path) -> None:
    trained = mine.fit(tmp_path / "a")
    for stranger in (rt.load(tmp_path / "a", trained.model), replace(trained, call=None)):
        with pytest.raises(SettingError, match="only what rt"):
            stranger.attack(**FEW)


def test_a_model_that_is_no_classifier_has_a_page_but_no_canaries(mine: Any, tmp_path: Path) -> None:
    x, y = mine.train
    model, points = nn.Linear(4, 1), (x, y.float()[:, None])
    settings: dict[str, Any] = {"epsilon": 4.0, "epochs": 2, "lr": 0.01, "seed": 0, "loss": "mse"}
    trained = rt.fit(model, points, folder=tmp_path / "a", test=points, validation=points, **settings)
    result = read_result(tmp_path / "a")
    assert (result.accuracy, result.confusion) == (None, None)
    assert result.learning is not None
    assert result.learning.of == "loss"
    assert result.beyond == ("data", "model", "loss")
    page = trained.report().read_text()
    assert "Loss on public validation" in page
    assert "Always answering the mean" in page
    with pytest.raises(SettingError, match="need a classifier"):
        trained.attack(**FEW)


def test_normalised_examples_and_a_model_that_was_trained_before_are_repeated(mine: Any, tmp_path: Path) -> None:
    """Shadows are normalised by statistics of their own, and begin where the model began."""
    first = mine.fit()
    x, y = mine.train
    given = rt.normalise((x, y), budget_share=0.2, low=-5.0, high=5.0)
    settings: dict[str, Any] = {"epsilon": 9.0, "epochs": 1, "seed": 3, "initial": first, "test": mine.test}
    trained = rt.fit(first.model, given, **settings)
    assert trained.call is not None
    again = own_run(trained, trained.call).train(Examples(x, y), seed=3)
    assert again.guarantee == trained.guarantee
    for name, part in trained.model.state_dict().items():
        assert torch.equal(part, again.model.state_dict()[name]), name
    assert trained.call.normalising is not None
    assert "better than guessing" in trained.attack(**FEW).sentence


def test_shadows_are_charged_to_nobody(mine: Any, tmp_path: Path) -> None:
    budget = DatasetLedger(tmp_path / "ledger.sqlite").create("visits", epsilon=20.0, delta=1e-4, adjacency="zero-out")
    trained = mine.fit(dataset=budget, delta=1e-5, seed=None)
    before = budget.share()
    assert 0 < before < 1
    trained.attack(**FEW)
    assert budget.share() == before


def test_a_run_by_person_is_not_attacked_row_by_row(mine: Any, tmp_path: Path) -> None:
    trained = mine.fit(tmp_path / "a", groups=torch.arange(150) // 3)
    assert "private persons" in trained.report().read_text()
    assert read_result(tmp_path / "a").beyond == ("data", "model", "groups")
    with pytest.raises(SettingError, match="promises for whole persons"):
        trained.attack(**FEW)


def test_settings_that_nobody_said_are_told_and_repeated(mine: Any, tmp_path: Path) -> None:
    trained = mine.fit(tmp_path / "a", lr=None, batch_size=None, epochs=None)
    result = read_result(tmp_path / "a")
    assert set(result.by_rule) == {"lr", "batch_size", "epochs", "momentum", "average_last"}
    assert result.recipe["lr"] == trained.about["settings"]["lr"]
    assert trained.call.settings["epochs"] == trained.about["settings"]["epochs"]


class Wrapped(nn.Module):
    """A network that answers with a dict, as those of Hugging Face do."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.layer = nn.Linear(4, outputs)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        return {"logits": self.layer(x)}


@pytest.mark.parametrize("kind", ["one logit", "one logit, flat", "dict"])
def test_a_classifier_is_attacked_and_audited_however_it_answers(mine: Any, kind: str) -> None:
    """One logit for yes or no is two classes: attacks and canaries ask it as such."""
    made = {"one logit, flat": nn.Sequential(nn.Linear(4, 1), nn.Flatten(0)), "dict": Wrapped(2)}
    types = {"one logit": torch.bool, "one logit, flat": torch.float32}
    train, test = ((x, (y == 1).to(types.get(kind, torch.int64))) for x, y in (mine.train, mine.test))
    few: dict[str, Any] = {"epsilon": 4.0, "epochs": 1, "batch_size": 30, "lr": 0.5, "seed": 0}
    loss = "cross_entropy" if kind == "dict" else nn.BCEWithLogitsLoss()
    trained = rt.fit(made.get(kind, nn.Linear(4, 1)), train, test=test, loss=loss, **few)
    found = trained.attack(shadows=4, records=20, attacks=["loss", "lira", "whitebox"])
    assert found.records == 20
    assert len(found.attacks) == 3
    assert trained.audit(canaries=10, runs=20, seed=0).name == "one run, 10 canaries"


@pytest.mark.parametrize("task", ["regression", "labels", "ranks"])
def test_what_is_no_classifier_is_audited_without_canaries(mine: Any, task: str) -> None:
    x, y = mine.train
    outputs, loss, targets = {
        "regression": (1, "mse", y.float()),
        "labels": (3, "bce", torch.nn.functional.one_hot(y).float()),
        "ranks": (2, "ordinal", y),
    }[task]
    few: dict[str, Any] = {"epsilon": 4.0, "epochs": 1, "batch_size": 30, "lr": 0.1, "seed": 0}
    trained = rt.fit(nn.Linear(4, outputs), (x, targets), test=(x, targets), loss=loss, **few)
    with pytest.raises(SettingError, match="attacks and canaries need a classifier"):
        trained.attack(**FEW)
    with pytest.raises(SettingError, match="attacks and canaries need a classifier"):
        trained.audit(canaries=10, runs=20, seed=0)
    assert trained.audit(runs=20, seed=0).verdict == "consistent"
