"""Runs on other draws: what is planned, refused and promised."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

import reticent as rt
from reticent.accounting import BinInTurn, Gaussian, OnceIn
from reticent.accounting.simplify import tally
from reticent.errors import SettingError
from reticent.inside import BallsInBins
from reticent.outside import ExponentialDecay, NoisyTest, Selective

Pair = tuple[Tensor, Tensor]


def make(method: rt.methods.Method, examples: Pair, **said: object) -> rt.Run:
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    return rt.Run(model, sgd, examples, method=method, **{"batch_size": 40, "delta": 1e-5, "seed": 3} | said)  # type: ignore[arg-type]


def test_an_epoch_of_bins_is_charged_once(blobs: Pair) -> None:
    run = make(rt.methods.get("balls_in_bins", noise_multiplier=2.0), blobs, rounds=12)
    list(run)
    assert run.ledger.tally() == run.plan.tally()
    assert [entry.event for entry in run.ledger][:6] == [BinInTurn(turn % 5, 5, Gaussian(2.0)) for turn in range(6)]
    assert tally(run.ledger.tally()) == {OnceIn(5, Gaussian(2.0)): 3}


@pytest.mark.parametrize("change", [{"gate": Selective(NoisyTest(batch_size=10))}, {"control": ExponentialDecay(0.1)}])
def test_rounds_of_an_epoch_must_be_alike(change: dict[str, object], blobs: Pair) -> None:
    method = replace(rt.methods.dpsgd(noise_multiplier=2.0), sampler=BallsInBins(), **change)  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="charged together"):
        make(method, blobs, rounds=5)


def test_a_cap_promises_nothing_for_one_example_more(blobs: Pair) -> None:
    capped = rt.methods.get("truncated", noise_multiplier=2.0, most=50)
    assert math.isfinite(make(capped, blobs, rounds=3).guarantee().epsilon)
    assert math.isfinite(make(capped, blobs, rounds=3, adjacency="replace").guarantee().epsilon)
    declared = make(capped, blobs, rounds=3, size=200).guarantee()
    assert declared.status == "none"
    assert "number of examples" in declared.why
    fixed = rt.methods.get("fixed_size", noise_multiplier=2.0)
    assert make(fixed, blobs, rounds=3, size=200).guarantee().status == "proved"
