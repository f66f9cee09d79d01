"""Runs that are charged to a dataset: before the first release, once, and given back only against their folder."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest
import torch
from tests import quick
from torch import Tensor, nn

import reticent as rt
from reticent.accounting import Entry, Ledger
from reticent.budgets import DatasetBudget
from reticent.budgets.reserving import NOTE
from reticent.errors import BudgetSpent, ResumeError, SettingError
from reticent.inside import Vault

Pair = tuple[Tensor, Tensor]
Folder = Path | None


@pytest.fixture
def dataset(sqlite: str) -> DatasetBudget:
    return rt.DatasetLedger(sqlite).create("blobs", epsilon=8.0, delta=1e-5)


def a_run(blobs: Pair, dataset: DatasetBudget | None, folder: Folder = None, **changes: object) -> rt.Run:
    model = nn.Linear(4, 2)
    settings = {"method": rt.methods.dpsgd(noise_multiplier=2.0), "batch_size": 20, "rounds": 4, "size": 200}
    settings |= {"delta": 1e-5, "folder": folder, "dataset": dataset, "checkpoint_seconds": 0.0} | changes
    return rt.Run(model, torch.optim.SGD(model.parameters(), lr=0.1), blobs, **settings)  # type: ignore[arg-type]


def test_the_whole_plan_is_charged_before_the_first_release(
    blobs: Pair, dataset: DatasetBudget, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, release = [], Vault.release

    def look(self: Vault, *given: object) -> Tensor:
        seen.append([(one.state, one.planned.events) for one in dataset.history()])
        return release(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Vault, "release", look)
    run = a_run(blobs, dataset)
    list(run)
    assert seen == [[("spent", run.plan.tally())]] * 4
    assert "together with all that is charged to the dataset 'blobs': (8.00, 1e-05)-DP" in run.guarantee().covers[-1]


def test_a_run_that_would_pass_the_cap_never_starts(blobs: Pair, dataset: DatasetBudget, tmp_path: Path) -> None:
    dataset.charge(rt.accounting.Concentrated(0.99 * dataset.limit / dataset.order), note="nearly all of it")
    with pytest.raises(BudgetSpent, match=r"has 1.0 % of its cap of epsilon 8 left.*nothing was charged or released"):
        a_run(blobs, dataset, tmp_path, rounds=40)
    assert len(dataset.history()) == 1
    assert not (tmp_path / "private" / "checkpoint.safetensors").exists()
    a_run(blobs, dataset, tmp_path)  # the folder is as good as new
    assert len(dataset.history()) == 2


def test_runs_that_say_nothing_of_the_examples_are_refused(blobs: Pair, dataset: DatasetBudget) -> None:
    with pytest.raises(BudgetSpent, match="counted on them"):
        a_run(blobs, dataset, size=None)
    with pytest.raises(SettingError, match="takes no seed"):
        a_run(blobs, dataset, seed=0)
    with pytest.raises(BudgetSpent, match="cannot be charged"):
        a_run(blobs, dataset, method=rt.methods.pd_sgd())
    assert dataset.history() == []
    with pytest.raises(SettingError, match="must not be stored"):
        a_run(blobs, dataset).watch()


@pytest.mark.parametrize("method", ["dpis", "dpagd"])
def test_a_run_with_a_filter_costs_its_limit(blobs: Pair, dataset: DatasetBudget, method: str) -> None:
    run = a_run(blobs, dataset, method=rt.methods.get(method), budget=rt.Budget(2.0, 1e-5))
    (charged,) = dataset.history()
    assert not charged.planned.events
    assert charged.planned.filters[0].order == run.plan.filter_order
    assert 0 < dataset.share() < 1


def test_a_resumed_run_is_charged_once(blobs: Pair, dataset: DatasetBudget, tmp_path: Path) -> None:
    a_run(blobs, dataset, tmp_path).step()
    run = a_run(blobs, dataset, tmp_path, resume=True)
    assert run.number == 1
    list(run)
    assert len(dataset.history()) == 1
    assert a_run(blobs, dataset, tmp_path, resume=True).over


def test_a_run_goes_on_with_its_own_charge_only(
    blobs: Pair, dataset: DatasetBudget, tmp_path: Path, sqlite: str
) -> None:
    a_run(blobs, dataset, tmp_path).step()
    with pytest.raises(ResumeError, match="dataset = "):
        a_run(blobs, None, tmp_path, resume=True)
    other = rt.DatasetLedger(sqlite).create("other", epsilon=8.0, delta=1e-5)
    with pytest.raises(ResumeError, match="charged to dataset 'blobs', not to 'other'"):
        a_run(blobs, other, tmp_path, resume=True)
    empty = rt.DatasetLedger(tmp_path / "empty.sqlite").create("blobs", epsilon=8.0, delta=1e-5)
    with pytest.raises(ResumeError, match="knows nothing of run"):
        a_run(blobs, empty, tmp_path, resume=True)


def test_a_folder_that_lost_its_checkpoint_is_no_free_run(blobs: Pair, dataset: DatasetBudget, tmp_path: Path) -> None:
    list(a_run(blobs, dataset, tmp_path))
    for name in ("private/checkpoint.safetensors", "ledger.jsonl"):
        (tmp_path / name).unlink()
    with pytest.raises(ResumeError, match="its checkpoint is gone"):
        a_run(blobs, dataset, tmp_path)
    with pytest.raises(ResumeError, match="has lost its ledger or its checkpoint"):
        settle(dataset, tmp_path)
    assert dataset.history()[0].state == "spent"


def settle(dataset: DatasetBudget, folder: Path) -> str:
    return rt.DatasetLedger(dataset.database.url.database).settle(folder)[1].state


def test_what_a_run_did_not_use_is_given_back(blobs: Pair, dataset: DatasetBudget, tmp_path: Path) -> None:
    run = a_run(blobs, dataset, tmp_path, rounds=8, already=[rt.accounting.Gaussian(50.0)])
    for _ in range(2):
        run.step()
    before, alone = dataset.share(), rt.accounting.Spending(run.plan.tally(2)) + dataset.history()[0].before
    assert settle(dataset, tmp_path) == "settled"
    assert dataset.share() == pytest.approx(alone.divergence(dataset.order) / dataset.limit)
    assert dataset.share() < before
    with pytest.raises(ResumeError, match="another run has taken this folder over"):
        run.step()
    for again in (lambda: a_run(blobs, dataset, tmp_path, rounds=8, resume=True), lambda: settle(dataset, tmp_path)):
        with pytest.raises(ResumeError):
            again()


def test_a_run_that_did_nothing_costs_nothing(blobs: Pair, dataset: DatasetBudget, tmp_path: Path) -> None:
    a_run(blobs, dataset, tmp_path)
    assert settle(dataset, tmp_path) == "unused"
    assert dataset.share() == 0
    with pytest.raises(ResumeError, match="is settled"):
        a_run(blobs, dataset, tmp_path, resume=True)


def test_a_filters_run_is_settled_by_what_it_chose(blobs: Pair, dataset: DatasetBudget, tmp_path: Path) -> None:
    run = a_run(blobs, dataset, tmp_path, method=rt.methods.dpagd(), budget=rt.Budget(2.0, 1e-5))
    run.step()
    before = dataset.share()
    assert settle(dataset, tmp_path) == "settled"
    assert 0 < dataset.share() < before
    assert dataset.history()[0].used.events == run.ledger.tally()  # type: ignore[union-attr]


def test_only_the_true_folder_gives_anything_back(blobs: Pair, dataset: DatasetBudget, tmp_path: Path) -> None:
    folder, copy = tmp_path / "run", tmp_path / "copy"
    run = a_run(blobs, dataset, folder)
    shutil.copytree(folder, copy)  # before the first release
    list(run)
    with pytest.raises(ResumeError, match="is a copy of"):
        settle(dataset, copy)
    with pytest.raises(ResumeError, match="holds no run that is charged"):
        settle(dataset, tmp_path)
    whole = (folder / "ledger.jsonl").read_bytes()
    (folder / "ledger.jsonl").write_bytes(b"".join(whole.splitlines(keepends=True)[:-1]))
    with pytest.raises(ResumeError, match="holds 3 releases, and 4 had been made"):
        settle(dataset, folder)
    (folder / "ledger.jsonl").write_bytes(whole)
    Ledger(folder / "ledger.jsonl").record(Entry(round=4, query=0, event=next(iter(run.plan.tally())), seal=""))
    with pytest.raises(ResumeError, match="was not charged for"):
        settle(dataset, folder)
    assert dataset.history()[0].state == "spent"


def test_a_copied_note_is_no_free_run(blobs: Pair, dataset: DatasetBudget, tmp_path: Path) -> None:
    a_run(blobs, dataset, tmp_path / "one")
    (tmp_path / "two").mkdir()
    shutil.copy(tmp_path / "one" / NOTE, tmp_path / "two" / NOTE)
    with pytest.raises(ResumeError, match="has begun, and its checkpoint is gone"):
        a_run(blobs, dataset, tmp_path / "two")


def test_a_run_that_was_cut_off_before_it_began_takes_its_charge_up_again(
    blobs: Pair, dataset: DatasetBudget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(_run: rt.Run) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(rt.Run, "save", die)  # between the charge and the checkpoint
        with pytest.raises(KeyboardInterrupt):
            a_run(blobs, dataset, tmp_path)
    (charged,) = dataset.history()
    assert (charged.state, charged.used) == ("reserved", None)
    with pytest.raises(ResumeError, match="for another plan"):
        a_run(blobs, dataset, tmp_path, rounds=3)
    list(a_run(blobs, dataset, tmp_path))
    assert [one.run for one in dataset.history()] == [charged.run]


KILLED = """
import os, signal, sys
import torch, reticent as rt
from reticent.inside import Vault

Vault.release = lambda *_given: os.kill(os.getpid(), signal.SIGKILL)
net, x = torch.nn.Linear(4, 2), torch.randn(200, 4)
dataset = rt.DatasetLedger(sys.argv[1])["blobs"]
run = rt.Run(net, torch.optim.SGD(net.parameters(), lr=0.1), (x, torch.arange(200) % 2), batch_size=20, rounds=4,
             method=rt.methods.dpsgd(noise_multiplier=2.0), size=200, delta=1e-5, folder=sys.argv[2], dataset=dataset)
run.step()
"""


def test_killed_between_its_charge_and_the_first_release(dataset: DatasetBudget, tmp_path: Path) -> None:
    assert quick.run(KILLED, dataset.database, tmp_path).returncode == -signal.SIGKILL
    (charged,) = dataset.history()
    assert (charged.state, charged.used) == ("spent", None)
    assert dataset.share() > 0  # nobody gives it back without proof
    assert settle(dataset, tmp_path) == "unused"
    assert dataset.share() == 0


def test_fit_and_recipes_are_charged_too(blobs: Pair, dataset: DatasetBudget, tmp_path: Path) -> None:
    from reticent.experiments.recipe import Recipe
    from reticent.experiments.training import train

    rt.fit(nn.Linear(4, 2), blobs, epsilon=1.0, delta=1e-5, epochs=1, size=200, dataset=dataset)
    recipe = Recipe(data="digits", size=1500, epsilon=1.0, delta=1e-5, epochs=1, centre=50.0)
    train(recipe, tmp_path, charge_to=dataset)
    assert [len(one.before.events) for one in dataset.history()] == [0, 1]
    for wrong in ({"method": "selena", "epsilon": None}, {"validation": 100, "size": None}):
        with pytest.raises(SettingError):
            train(Recipe(**(recipe.to_json() | wrong)), charge_to=dataset)
    assert len(dataset.history()) == 2
