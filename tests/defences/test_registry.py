"""The defences by name: what the command line calls."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest
import torch
from torch import nn
from torch.nn.utils import parameters_to_vector as flat

from reticent.accounting import Guarantee
from reticent.defences import AdvReg, Plain, Selena, defend, names, options
from reticent.errors import UnknownName

QUICK = {"advreg": {"epochs": 1}, "selena": {"epochs": 1, "K": 4, "L": 2}}


@pytest.mark.parametrize("name", names())
def test_each_gives_back_a_plain_module_and_no_guarantee(points, small, name):
    found = defend(name, small, points, seed=1, batch_size=64.0, **QUICK[name])
    assert type(found.model) is nn.Sequential
    assert Guarantee.from_json(json.loads(json.dumps(found.guarantee.to_json()))) == found.guarantee
    assert found.guarantee.status == "none"
    assert json.loads(json.dumps(found.about)) == found.about


@pytest.mark.parametrize("name", names())
def test_a_seed_fixes_the_initial_weights_too(points, small, name):
    torch.manual_seed(1)
    one = defend(name, small, points, seed=5, **QUICK[name])
    torch.manual_seed(2)
    again = defend(name, small, points, seed=5, **QUICK[name])
    assert torch.equal(flat(one.model.parameters()), flat(again.model.parameters()))


@pytest.mark.parametrize("name", names())
def test_without_a_seed_two_runs_differ(points, small, name):
    one, other = (defend(name, small, points, **QUICK[name]) for _ in range(2))
    assert not torch.equal(flat(one.model.parameters()), flat(other.model.parameters()))
    assert not one.guarantee.seeded


@pytest.mark.parametrize("name", names())
def test_progress_counts_up_to_its_total(points, small, name):
    told: list[tuple[int, int]] = []
    found = defend(name, small, points, progress=lambda done, total: told.append((done, total)), **QUICK[name])
    done, totals = [now for now, _ in told], {total for _, total in told}
    assert done == sorted(done)
    assert totals == {done[-1]} == {found.rounds}


def test_options_are_the_settings_with_their_defaults():
    assert options("advreg") == asdict(AdvReg()) | asdict(Plain())
    assert options("selena") == asdict(Selena()) | asdict(Plain())


@pytest.mark.parametrize("settings", [AdvReg(penalty=2.0), Selena(K=5, L=2), Plain(momentum=0.9)], ids=str)
def test_settings_print_themselves(settings):
    assert eval(repr(settings)) == settings


def test_an_unknown_name_is_named():
    with pytest.raises(UnknownName, match="did you mean 'selena'"):
        options("selene")
