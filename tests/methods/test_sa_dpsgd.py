"""SA-DPSGD: how it cools, when it is forced to accept, and who is asked."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from laws import Law
from torch import nn

from reticent.accounting import Gaussian, Subsampled
from reticent.errors import SettingError
from reticent.inside import Flat, Task
from reticent.methods import sa_dpsgd
from reticent.outside import Annealed, PrivateAnswer, PublicHoldout


def test_annealing_keeps_what_helps_and_cools() -> None:
    gate = Annealed(PrivateAnswer(), cooling=10.0, max_rejections=4)
    assert gate.chance(-1e9, 50) == gate.chance(0.0, 50) == 1.0
    assert [round(gate.chance(0.01, kept), 4) for kept in (0, 1, 10)] == [1.0, 0.9048, 0.3679]
    assert gate.chance(math.nan, 0) == 0.0


def test_annealing_on_a_public_holdout() -> None:
    law = Law(torch.ones(20, 1))
    gate = Annealed(PublicHoldout(torch.ones(5, 1), torch.zeros(5)), cooling=10.0, max_rejections=4)
    better, worse = law.proposal(torch.tensor([-0.3]), kept=100, coin=0.999), None
    assert gate.settle(better).kept
    worse = law.proposal(torch.tensor([0.3]), kept=100, coin=0.001)
    assert not gate.settle(worse).kept
    assert gate.settle(law.proposal(torch.tensor([0.3]), kept=100, coin=0.001, rejections=4)).kept, "forced after mu0"
    assert len(law.vault.ledger) == 0, "public examples cost nothing"


def test_a_place_is_asked_about_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """An attempt starts where the last one ended or began; the answer is the same as if both were asked again."""
    law, judge = Law(torch.ones(20, 1)), PublicHoldout(torch.full((5, 1), 2.0), torch.zeros(5))
    asked: list[float] = []
    loss = PublicHoldout._loss

    def counted(self: PublicHoldout, task: Task) -> float:
        asked.append(loss(self, task))
        return asked[-1]

    monkeypatch.setattr(PublicHoldout, "_loss", counted)
    assert judge.change(law.proposal(torch.tensor([0.5]))) == pytest.approx(1.0)
    assert len(asked) == 2
    assert judge.change(law.proposal(torch.tensor([-0.25]))) == pytest.approx(-0.5)
    assert len(asked) == 3, "dropped: the next attempt starts at the same place"
    moved = law.proposal(torch.tensor([-0.25]))
    assert judge.change(replace(moved, before=torch.tensor([-0.25]))) == 0.0
    assert len(asked) == 4, "kept: it starts where the last one ended"
    assert judge.change(replace(moved, before=torch.tensor([7.0]))) == pytest.approx(-14.5)
    assert len(asked) == 6, "elsewhere: both are asked"


def test_a_place_has_one_loss_whatever_is_dropped_out() -> None:
    """A resumed run asks again about what the run before the crash remembered, and must decide alike."""
    model = nn.Sequential(nn.Linear(3, 8), nn.Dropout(), nn.Linear(8, 1))
    task = Task(model, lambda net, batch: net(batch[0])[:, 0] - batch[1], Flat(model))
    judge = PublicHoldout(torch.rand(20, 3), torch.zeros(20))
    chance = torch.get_rng_state()
    assert judge._loss(task) == judge._loss(task)
    assert torch.equal(chance, torch.get_rng_state())


def test_annealing_without_a_holdout_asks_through_the_door() -> None:
    law = Law(torch.ones(20, 1))
    gate = Annealed(PrivateAnswer(batch_size=10, noise_multiplier=3.0))
    with law.vault.round(0):
        gate.settle(law.proposal(torch.tensor([0.3])))
    assert law.vault.ledger.tally() == {Subsampled(0.5, Gaussian(3.0)): 1}


def test_a_holdout_must_be_called_public() -> None:
    with pytest.raises(SettingError, match="holdout_is_public=True"):
        sa_dpsgd(holdout=(torch.ones(5, 1), torch.zeros(5)))


def test_hidden_annealing_needs_a_public_judge() -> None:
    with pytest.raises(SettingError, match="public hold-out"):
        sa_dpsgd(hidden_attempts=True)


def test_a_holdout_that_is_reported_on_must_be_admitted_and_is_told() -> None:
    """The paper judges updates by the test set; a guarantee then says what accuracy on it is worth."""
    test = torch.ones(5, 1), torch.zeros(5)
    honest, admitted = (
        sa_dpsgd(holdout=test, holdout_is_public=True, judge_on_test=said).gate for said in (False, True)
    )
    assert honest.proof.assumptions == ("the hold-out is public",)
    assert any("no estimate" in said for said in admitted.proof.assumptions)
    with pytest.raises(SettingError, match="give that as holdout"):
        sa_dpsgd(judge_on_test=True)
