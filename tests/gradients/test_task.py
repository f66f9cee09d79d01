"""The walk over a model's parameters names what torch names, in the same order."""

from __future__ import annotations

import pytest
from torch import nn

from reticent.gradients.task import trainable


class Renamed(nn.Linear):
    """Names its parameters itself, as wrappers do."""

    def named_parameters(self, *args, **kwargs):
        return ((f"own.{name}", parameter) for name, parameter in super().named_parameters(*args, **kwargs))


class Hides(nn.Module):
    """Tells of some of its modules only, as a wrapper of something frozen may."""

    def __init__(self, *, way):
        super().__init__()
        self.shown, self.hidden = nn.Linear(2, 2), nn.Linear(2, 2)
        self.way = way

    def named_modules(self, *args, **kwargs):
        found = super().named_modules(*args, **kwargs)
        return (each for each in found if self.way != "modules" or not each[0].endswith("hidden"))

    def _named_members(self, *args, **kwargs):
        found = super()._named_members(*args, **kwargs)
        return (each for each in found if self.way != "members" or not each[0].startswith("hidden"))


def of_its_own():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model.named_parameters = lambda *_args, **_kwargs: iter([("0.weight", model[0].weight)])
    return model


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


@pytest.mark.parametrize(
    "make",
    [
        tied,
        shared,
        mixed,
        round_trip,
        of_its_own,
        lambda: Renamed(2, 2),
        lambda: Hides(way="modules"),
        lambda: Hides(way="members"),
        lambda: nn.Sequential(Hides(way="modules")),
    ],
)
def test_the_walk_names_what_torch_names(make):
    model = make()
    named = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    found = trainable(model)
    assert list(found) == list(named)
    assert all(found[name] is parameter for name, parameter in named.items())
