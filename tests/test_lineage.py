"""Every run that made some weights is counted, and counted once, whichever way the weights went."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import reticent as rt
from reticent.accounting import Gaussian, Subsampled, price
from reticent.accounting.lineage import Lineage
from reticent.accounting.spending import Filtered, Spending
from reticent.data.examples import Examples
from reticent.errors import DataError, SettingError
from reticent.origins import REST

Pair = tuple[Tensor, Tensor]
STEP = Subsampled(0.5, Gaussian(4.0))
"""What one round of every run here releases, of which there are two."""


def fitted(model: nn.Module, blobs: Pair | Examples, **more: Any) -> rt.Trained:
    said = {"noise_multiplier": 4.0, "delta": 1e-5, "epochs": 1, "batch_size": 100, "size": 200, "seed": 0, "lr": 0.1}
    return rt.fit(model, blobs, **(said | more))


class Ensemble(nn.Module):
    """The mean of two models."""

    def __init__(self, one: nn.Module, other: nn.Module):
        super().__init__()
        self.one, self.other = one, other

    def forward(self, x: Tensor) -> Tensor:
        """What both answer together."""
        return (self.one(x) + self.other(x)) / 2


def test_two_runs_with_the_same_settings_are_two(blobs: Pair) -> None:
    one, other = fitted(nn.Linear(4, 2), blobs), fitted(nn.Linear(4, 2), blobs)
    assert one.spending == other.spending
    both = Ensemble(one.model, other.model)
    for said in (one, other, [one, one]):
        with pytest.raises(SettingError, match=r"or from several: .*initial=\[one, other\]"):
            fitted(both, blobs, initial=said)
    done = fitted(both, blobs, initial=[one, other])
    assert done.spending.events == {STEP: 6}
    assert done.guarantee.epsilon == price({STEP: 6}, 1e-5, adjacency="add-or-remove").epsilon


def test_a_chain_that_freezes_and_unfreezes_composes_each_run_once(blobs: Pair, tmp_path: Path) -> None:
    body, head = nn.Linear(4, 4), nn.Linear(4, 2)
    model = nn.Sequential(body, nn.Tanh(), head)
    first = fitted(model, blobs)
    body.requires_grad_(False)
    second = fitted(model, blobs, initial=first)
    head.requires_grad_(False)
    body.requires_grad_(True)
    third = fitted(model, blobs, initial=second, folder=tmp_path)
    assert third.spending.events == {STEP: 6}
    assert list(third.lineage.runs)[:2] == list(second.lineage.runs)
    for earlier in (first, second):
        with pytest.raises(SettingError, match="come from another run"):
            fitted(model, blobs, initial=earlier)
    assert rt.verify(tmp_path).ok
    assert rt.load(tmp_path, nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))).lineage == third.lineage


def test_a_run_is_counted_once_however_many_ways_lead_to_it(blobs: Pair, tmp_path: Path) -> None:
    first = fitted(nn.Linear(4, 2), blobs)
    first.save(tmp_path)
    ways = [rt.load(tmp_path, nn.Linear(4, 2)) for _ in range(2)]
    left, right = (fitted(way.model, blobs, initial=way) for way in ways)
    both = fitted(Ensemble(left.model, right.model), blobs, initial=(left, right))
    assert len(both.lineage.runs) == 4
    assert both.spending.events == {STEP: 8}


def test_two_runs_that_were_opened_on_one_model_do_not_take_turns(blobs: Pair) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))

    def train_only(trained: int) -> None:
        for place, layer in enumerate(model):
            layer.requires_grad_(place == trained)

    def a_run(trained: int) -> rt.Run:
        train_only(trained)
        method, optimizer = rt.methods.dpsgd(noise_multiplier=4.0), torch.optim.SGD(model[trained].parameters(), 0.1)
        return rt.Run(model, optimizer, blobs, method=method, batch_size=20, rounds=2)

    one, other = a_run(0), a_run(1)
    train_only(0)
    one.step()
    train_only(1)
    with pytest.raises(SettingError, match="a private run has trained this model already"):
        other.step()


@pytest.mark.parametrize("frozen", [True, False])
def test_what_was_declared_public_is_said_of_the_examples_of_that_run_alone(
    blobs: Pair, tmp_path: Path, frozen: bool
) -> None:
    body, head = nn.Linear(4, 4), nn.Linear(4, 2)
    model, others = nn.Sequential(body, head), (torch.rand(200, 4), torch.randint(0, 2, (200,)))
    first = fitted(model, blobs)
    body.requires_grad_(not frozen)
    public = fitted(model, others, initial="public", folder=tmp_path)
    loaded = rt.load(tmp_path, nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)))
    loaded.model[0].requires_grad_(not frozen)
    for came in (public, loaded):
        assert came.spending.events == {STEP: 2}
        with pytest.raises(SettingError, match="come from other runs too"):
            fitted(came.model, blobs, initial=came)
    whole = fitted(loaded.model, blobs, initial=[first, loaded])
    assert whole.spending.events == {STEP: 6}
    again = fitted(model, others, initial=[public, "public"])
    assert again.spending.events == {STEP: 4}
    assert REST in again.guarantee.assumptions


def test_a_resumed_run_knows_what_was_declared_public(blobs: Pair, tmp_path: Path) -> None:
    model = nn.Linear(4, 2)
    fitted(model, blobs)

    def a_run(model: nn.Module, **more: Any) -> rt.Run:
        method, optimizer = rt.methods.dpsgd(noise_multiplier=4.0), torch.optim.SGD(model.parameters(), 0.1)
        said: dict[str, Any] = {"method": method, "batch_size": 20, "rounds": 3, "folder": tmp_path, **more}
        return rt.Run(model, optimizer, blobs, initial="public", **said)

    run = a_run(model)
    run.step()
    run.save()
    assert len(run.lineage.others) == 1
    assert a_run(nn.Linear(4, 2), resume=True).lineage == run.lineage


def test_a_resumed_run_keeps_its_id(blobs: Pair, tmp_path: Path) -> None:
    def a_run(**more: Any) -> rt.Run:
        model, method = nn.Linear(4, 2), rt.methods.dpsgd(noise_multiplier=4.0)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        return rt.Run(model, optimizer, blobs, method=method, batch_size=20, rounds=3, folder=tmp_path, **more)

    run = a_run()
    run.step()
    run.save()
    assert a_run(resume=True).lineage == run.lineage
    assert a_run(resume=True).lineage == run.lineage


def test_a_dataset_speaks_for_runs_that_were_all_charged_to_it(blobs: Pair, tmp_path: Path) -> None:
    patients = rt.DatasetLedger(tmp_path / "ledger.sqlite").create("patients", epsilon=9.0, delta=1e-5)
    model = nn.Linear(4, 2)
    first = fitted(model, blobs, dataset=patients, seed=None)
    second = fitted(model, blobs, dataset=patients, seed=None, initial=first)
    assert any("all that is charged to the dataset" in line for line in second.guarantee.covers)
    assert {one.run for one in patients.history()} == set(second.lineage.runs)


def test_one_run_cannot_have_cost_two_sums() -> None:
    with pytest.raises(DataError, match="two different spendings"):
        Lineage({"a": Spending({STEP: 1})}) | Lineage({"a": Spending({STEP: 2})})


def test_it_does_not_matter_which_of_two_filtered_runs_was_first() -> None:
    one, other = (Spending(filters=(Filtered(8.0, limit, "zero-out"),)) for limit in (0.25, 0.5))
    assert one + other == other + one
    both = Lineage({"b": one, "a": other})
    assert Lineage.from_json(both.to_json()).spending == both.spending


def test_a_mark_that_cannot_be_read_is_not_overlooked(blobs: Pair) -> None:
    model = nn.Linear(4, 2)
    vars(model)["_reticent_spending"] = '{"declared": true, "events": [], "filters": []}'
    with pytest.raises(SettingError, match="has trained this model already"):
        fitted(model, blobs)


def test_what_the_runs_before_rest_on_the_next_rests_on(blobs: Pair) -> None:
    """Noise of a seeded run can be made again by anybody, and what it assumed is assumed of its weights."""
    told = Examples(*blobs, stands_on=("the features count as public",))
    model = nn.Linear(4, 2)
    first = fitted(model, told, initial="public", seed=0)
    second = fitted(model, blobs, initial=first, seed=None)
    third = fitted(model, blobs, initial=[second, "public"], seed=None)
    for after in (second.guarantee, third.guarantee):
        assert after.seeded
        assert set(first.guarantee.assumptions) <= set(after.assumptions)
        assert set(first.guarantee.excludes) <= set(after.excludes)
        assert len(set(after.assumptions)) == len(after.assumptions)
    secret = fitted(nn.Linear(4, 2), blobs, seed=None)
    assert not fitted(secret.model, blobs, initial=secret, seed=None).guarantee.seeded
