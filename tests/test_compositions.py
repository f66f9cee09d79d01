"""Stages compose beyond the papers, and the guarantee follows by itself; what no proof covers is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import reticent as rt
from reticent.accounting import AnnealedRelease, Budget, Gaussian, SelectiveAttempt, Subsampled
from reticent.errors import SettingError
from reticent.inside import Normalise, Partition
from reticent.methods import Method
from reticent.outside import (
    After,
    Annealed,
    ExponentialDecay,
    NoisyTest,
    PrivateAnswer,
    PublicHoldout,
    Selective,
    Sign,
    SmoothTest,
)

Pair = tuple[Tensor, Tensor]
TEST = NoisyTest(batch_size=10)


def make(method: Method, examples: Pair, **settings: Any) -> rt.Run:
    torch.manual_seed(0)
    net = nn.Linear(4, 2)
    settings = {"batch_size": 20, "rounds": 20, "delta": 1e-5, "seed": 0} | settings
    return rt.Run(net, torch.optim.SGD(net.parameters(), lr=0.1), examples, method=method, **settings)


def test_importance_sampling_with_signs(blobs: Pair) -> None:
    method = replace(rt.methods.dpis(max_grad_norm=1.0), name="dpis+sign", direction=Sign())
    run = make(method, blobs, budget=Budget(3.0, 1e-5))
    list(run)
    assert run.guarantee().status == "proved"
    assert run.guarantee().route == "filter"


def test_selection_of_normalised_gradients(blobs: Pair) -> None:
    method = replace(rt.methods.dpsgd(noise_multiplier=2.0), bound=Normalise(), gate=Selective(TEST))
    run = make(method, blobs)
    list(run)
    assert run.ledger.tally() == run.plan.tally()
    (event,) = run.plan.tally()
    assert isinstance(event, SelectiveAttempt)


def test_selection_under_decaying_noise(blobs: Pair) -> None:
    method = replace(rt.methods.dpsgd(noise_multiplier=2.0), control=ExponentialDecay(0.1), gate=Selective(TEST))
    run = make(method, blobs)
    list(run)
    assert run.ledger.tally() == run.plan.tally()
    noises = [event.noise_multiplier for event in run.plan.tally() if isinstance(event, SelectiveAttempt)]
    assert len(noises) == 2, "one attempt event for each epoch's noise"
    assert run.guarantee().pld is not None, "a schedule fixed in advance may be priced by loss distributions"


def test_late_smooth_selection_by_signs(blobs: Pair) -> None:
    gate = After(5, Selective(SmoothTest(batch_size=10)))
    run = make(replace(rt.methods.dpsign_sgd(noise_multiplier=2.0), gate=gate), blobs)
    list(run)
    tally = run.ledger.tally()
    assert tally[Subsampled(0.1, Gaussian(2.0))] == 5
    assert sum(tally.values()) == 20


def test_annealing_of_importance_sampled_updates_is_paid_release_by_release(blobs: Pair) -> None:
    """Nothing is hidden, so the filter covers it; hiding the dropped ones is refused."""
    gate = Annealed(PrivateAnswer(batch_size=10, noise_multiplier=8.0))
    run = make(replace(rt.methods.dpis(max_grad_norm=1.0), gate=gate), blobs, budget=Budget(3.0, 1e-5))
    list(run)
    assert run.guarantee().epsilon == 3.0
    public = PublicHoldout(torch.randn(5, 4), torch.zeros(5, dtype=torch.long))
    hidden = replace(rt.methods.dpis(max_grad_norm=1.0), gate=Annealed(public, hidden_attempts=True))
    with pytest.raises(SettingError, match="no proof covers"):
        make(hidden, blobs, budget=Budget(3.0, 1e-5))


def test_hidden_annealing_of_normalised_signs(blobs: Pair) -> None:
    public = PublicHoldout(torch.randn(5, 4), torch.zeros(5, dtype=torch.long))
    gate = Annealed(public, max_rejections=2, hidden_attempts=True)
    run = make(replace(rt.methods.auto_s(noise_multiplier=2.0), direction=Sign(), gate=gate), blobs, rounds=4)
    assert all(step.kept for step in run)
    assert run.ledger.tally() == {AnnealedRelease(0.1, 2.0, 2): 4}


def test_selection_of_a_partition_is_refused(blobs: Pair) -> None:
    method = replace(rt.methods.pd_sgd(), gate=Selective(TEST))
    assert method.sampler == Partition()
    with pytest.raises(SettingError, match="no proof covers"):
        make(method, blobs)
