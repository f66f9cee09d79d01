"""The walk over a model's parameters names what torch names, in the same order."""

from __future__ import annotations

import pytest
from torch import nn

from reticent.gradients.task import trainable


class Renamed(nn.Linear):
    """Names its parameters itself, as wrappers do."""

    def named_parameters(self, *args, **kwargs):
        return ((f"own.{name}", parameter) for name, parameter in super().named_parameters(*args, **kwargs))


def tied():
    model = nn.Sequential(nn.Embedding(5, 3), nn.Linear(3, 5, bias=False))
    model[1].weight = model[0].weight
    return model


def shared():
    inner = nn.Sequential(nn.Linear(2, 2))
    return nn.ModuleDict({"a": nn.ModuleList([inner, nn.Linear(2, 2)]), "b": inner, "c": inner[0]})


def mixed():
    model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.ParameterList([nn.Linear(1, 1).weight]), nn.LSTM(2, 3))
    model.register_module("nothing", None)
    model[2].weight_ih_l0.requires_grad_(False)
    model.scale = nn.Linear(1, 1).bias
    return model


def round_trip():
    model = nn.Sequential(nn.Linear(2, 2))
    object.__getattribute__(model[0], "_modules")["back"] = model  # a module may hold the one it is in
    return model


@pytest.mark.parametrize("make", [tied, shared, mixed, round_trip, lambda: Renamed(2, 2)])
def test_the_walk_names_what_torch_names(make):
    model = make()
    named = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    found = trainable(model)
    assert list(found) == list(named)
    assert all(found[name] is parameter for name, parameter in named.items())
