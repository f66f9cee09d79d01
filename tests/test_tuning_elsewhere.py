"""Trials in processes of their own: the same search, whatever comes of one of them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.tuning_elsewhere import failing_until
from torch import Tensor, nn

import reticent as rt
from reticent.accounting import Ledger
from reticent.errors import ReticentError, SettingError

GENERATOR = torch.Generator().manual_seed(0)
X = torch.randn(500, 4, generator=GENERATOR)
Y = (X.sum(1) > 0).long()
TRAIN, JUDGES = (X[:400], Y[:400]), (X[400:], Y[400:])
GIVEN: dict[str, Any] = {"epsilon": 4.0, "epochs": 1, "batch_size": 60, "seed": 6}
CHOICES = [{"lr": 1e-6}, {"lr": 1.0}]
make = partial(nn.Linear, 4, 2)


def told(tuned: rt.Tuned) -> tuple[float, dict[str, float], list[Tensor]]:
    return tuned.score, dict(tuned.settings), [part.detach() for part in tuned.trained.model.parameters()]


def search(**more: Any) -> rt.Tuned:
    return rt.tune(more.pop("make", make), TRAIN, judges=JUDGES, choices=CHOICES, trials=4, **GIVEN, **more)


def same(one: rt.Tuned, two: rt.Tuned) -> bool:
    (score, settings, weights), (others, other_settings, other_weights) = told(one), told(two)
    return (score, settings) == (others, other_settings) and all(map(torch.equal, weights, other_weights))


def test_trials_of_several_processes_are_those_of_one(tmp_path: Path) -> None:
    here, there = search(folder=tmp_path / "here"), search(folder=tmp_path / "there", jobs=2)
    assert same(here, there)
    assert here.trained.guarantee == there.trained.guarantee
    events = [[entry.event for entry in Ledger(tmp_path / name / "ledger.jsonl")] for name in ("here", "there")]
    assert events[0] == events[1]
    assert not (tmp_path / "there" / "trials").exists(), "how many there were is not to be seen"


def test_a_search_goes_on_with_the_trials_that_were_made(tmp_path: Path) -> None:
    sign = tmp_path / "sign"
    mine = partial(failing_until, sign)
    with pytest.raises(ReticentError, match="a trial failed: OSError"):
        search(make=mine, folder=tmp_path / "search", jobs=2)
    made = {place.name for place in (tmp_path / "search" / "trials").iterdir()}
    assert made == {"1"}, "the first and the last of three fail, and the other is kept"
    sign.touch()
    again = search(make=mine, folder=tmp_path / "search", jobs=2, resume=True)
    assert same(again, search())


def test_choices_tried_on_public_examples_by_several_processes(tmp_path: Path) -> None:
    public: dict[str, Any] = {"public": JUDGES, "public_is_public": True, "choices": CHOICES}
    here, there = (rt.tune_on_public(make, TRAIN, jobs=jobs, **public, **GIVEN) for jobs in (None, 2))
    assert same(here, there)


def test_what_cannot_be_sent_says_what_to_do() -> None:
    with pytest.raises(SettingError, match="take no lambda"):
        search(make=lambda: nn.Linear(4, 2), jobs=2)
