"""Compositions and crashes whose epsilon would not hold: each is refused, or costs what it costs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import reticent as rt
from reticent import checkpoint
from reticent.accounting import Budget, Gaussian, Ledger, Planned, RenyiFilter, SelectiveAttempt, SelectiveRelease
from reticent.accounting.renyi.conversions import to_epsilon
from reticent.errors import BudgetSpent, ResumeError, SettingError
from reticent.inside import (
    ByNorm,
    Clip,
    GradientSum,
    ImportanceSettings,
    Partition,
    Randomness,
    Vault,
    as_store,
)
from reticent.inside.task import Flat, Task
from reticent.losses import cross_entropy
from reticent.outside import After, NoisyTest, Selective

X, Y = torch.randn(600, 4, generator=torch.Generator().manual_seed(0)), torch.arange(600) % 2


def a_run(method: rt.methods.Method, folder: Path | None = None, y: torch.Tensor = Y, **settings: Any) -> rt.Run:
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    known = {"batch_size": 60, "rounds": 4, "seed": 0} | settings
    return rt.Run(model, optimizer, (X, y), method=method, folder=folder, checkpoint_seconds=1e9, **known)


# -- draws ---------------------------------------------------------------------------------------------------------


def test_importance_without_its_second_coin_is_refused_by_the_plan() -> None:
    mixed = replace(rt.methods.dpis(), query=GradientSum, bound=Clip())
    with pytest.raises(SettingError, match="second coin"):
        a_run(mixed, budget=Budget(3.0, 1e-5))


def test_importance_without_its_second_coin_is_refused_by_the_vault() -> None:
    """Before anything is known of norms everybody is a candidate, while the charge is for a tenth of them."""
    settings = ImportanceSettings(600, 60, 1.0, 1.0, norm_total=600.0)
    vault = Vault(
        as_store((X, Y)), randomness=Randomness.from_seed(0), ledger=Ledger(), allowance=Planned([Gaussian(1.0)])
    )
    model = nn.Linear(4, 2)
    query = GradientSum(Task(model, cross_entropy, Flat(model)), Clip(), settings)
    with pytest.raises(SettingError, match="nothing was released"):
        vault.ask(query, vault.draw(ByNorm(), settings))


def test_parts_of_a_fixed_size_prove_nothing() -> None:
    """One example more may push another one out of its part: the sum moves by twice the bound."""
    method = replace(rt.methods.dpsgd(noise_multiplier=2.0), sampler=Partition())
    assert a_run(method).guarantee().status != "proved"


# -- filters -------------------------------------------------------------------------------------------------------


def test_a_gate_that_hides_is_refused_also_if_it_comes_later() -> None:
    gate = Selective(NoisyTest(batch_size=10), hidden_attempts=True, cap=1)
    for late in (gate, After(1, gate)):
        with pytest.raises(SettingError, match="hides what it drops"):
            a_run(replace(rt.methods.dpis(), gate=late), budget=Budget(3.0, 1e-5))


def test_a_filter_does_not_let_a_cap_out() -> None:
    """The cap costs a share of delta, which a filter of one order does not have."""
    attempt = SelectiveAttempt(0.1, 1.0, 0.05, 0.1, 0.5)
    limit = RenyiFilter(8, 4.0, 1e-5)
    assert limit.covers(SelectiveRelease(attempt))
    assert not limit.covers(SelectiveRelease(attempt, 1))


def test_what_could_not_be_computed_proves_nothing() -> None:
    orders, curve = np.array([2.0, 8.0]), np.array([np.nan, 0.4])
    assert to_epsilon(orders, curve, 1e-5) == to_epsilon(orders[1:], curve[1:], 1e-5)
    assert to_epsilon(orders, np.full(2, np.nan), 1e-5) == (np.inf, None)


# -- folders -------------------------------------------------------------------------------------------------------


HIDDEN = rt.methods.dpsur(noise_multiplier=4.0, validation_batch_size=20, hidden_attempts=True)


def test_hidden_attempts_are_not_repeated_on_other_examples(tmp_path: Path) -> None:
    """Only the first release of a round is sealed; so that all are the same, every example must be."""
    run = a_run(HIDDEN, tmp_path)
    run.step()  # its checkpoint is not written yet: after a crash this round is repeated
    among_256 = set(np.unique(np.linspace(0, 599, 256).astype(int)).tolist())
    other = Y.clone()
    other[next(i for i in range(600) if i not in among_256)] ^= 1
    with pytest.raises(ResumeError, match="examples differ"):
        a_run(HIDDEN, tmp_path, other, resume=True)
    assert a_run(HIDDEN, tmp_path, resume=True).step() is not None


@pytest.mark.parametrize("method", ["dpsgd", "dpis", "dpsur"])
def test_a_run_that_is_over_keeps_no_secret(tmp_path: Path, method: str) -> None:
    """The key would tell who was drawn and what is under the noise; the norms are the examples' own."""
    settings: dict[str, Any] = {"budget": Budget(3.0, 1e-5)} if method == "dpis" else {}
    made = {"dpsgd": rt.methods.dpsgd(noise_multiplier=1.0), "dpis": rt.methods.dpis(), "dpsur": HIDDEN}[method]
    run = a_run(made, tmp_path, seed=None, **settings)
    assert checkpoint.read(tmp_path / "private" / "checkpoint.safetensors")["randomness"]["key"]
    list(run)
    left = checkpoint.read(tmp_path / "private" / "checkpoint.safetensors")
    assert not {"randomness", "examples", "memory"} & left.keys()
    again = a_run(made, tmp_path, seed=None, resume=True, **settings)
    assert again.over
    assert again.guarantee() == run.guarantee()
    assert all(torch.equal(a, b) for a, b in zip(run.model.parameters(), again.model.parameters(), strict=True))
    with pytest.raises(BudgetSpent):
        again.step()
    assert list(again) == []


def test_a_run_does_not_go_on_without_its_ledger(tmp_path: Path) -> None:
    """A filter that begins again at nothing would pay twice."""
    run = a_run(rt.methods.dpis(), tmp_path, budget=Budget(3.0, 1e-5))
    run.step()
    run.save()
    (tmp_path / "ledger.jsonl").unlink()
    with pytest.raises(ResumeError, match="ledger holds 0 releases"):
        a_run(rt.methods.dpis(), tmp_path, budget=Budget(3.0, 1e-5), resume=True)
