"""What a new user gets wrong first is told in a sentence, in Python and on the command line."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from typer.testing import CliRunner

import reticent as rt
from reticent.audits import audit_method
from reticent.cli import app
from reticent.errors import ModelError, SettingError, UnknownName

X, Y = torch.randn(60, 4, generator=torch.Generator().manual_seed(0)), torch.arange(60) % 2
FEW: dict[str, Any] = {"epsilon": 4.0, "epochs": 1, "seed": 0}

FACTORIES = """
from torch import nn

def lazy(inputs, classes):
    return nn.Sequential(nn.LazyLinear(8), nn.Linear(8, classes))

def narrow():
    return nn.Linear(3, 3)
"""


@pytest.mark.filterwarnings("ignore:Lazy modules")
def test_a_lazy_module_is_told_what_to_do() -> None:
    with pytest.raises(ModelError, match=r"lazy: send one made-up batch"):
        rt.fit(nn.Sequential(nn.LazyLinear(3), nn.Linear(3, 2)), (X, Y), **FEW)


def test_a_model_for_other_inputs_is_told_the_shape_and_keeps_its_own_words() -> None:
    with pytest.raises(ModelError, match=r"inputs of the shape \(4,\).*cannot be multiplied.*probes=") as refused:
        rt.fit(nn.Linear(5, 2), (X, Y), **FEW)
    assert isinstance(refused.value.__cause__, RuntimeError)


@pytest.mark.filterwarnings("ignore:Lazy modules")
@pytest.mark.parametrize(("factory", "told"), [("lazy", "made-up batch"), ("narrow", "inputs of the shape (4,)")])
def test_a_factory_that_does_not_fit_ends_without_a_traceback(on_disk: Path, factory: str, told: str) -> None:
    (on_disk / "own_networks.py").write_text(FACTORIES)
    named = ["train", "--data", "visits.toml", "--model", f"own_networks:{factory}", "--epsilon", "3"]
    refused = CliRunner().invoke(app, named).exception
    assert isinstance(refused, ModelError)
    assert told in str(refused)


def test_a_setting_that_is_nearly_right_is_recognised() -> None:
    with pytest.raises(UnknownName, match="did you mean 'epochs'"):
        rt.fit(nn.Linear(4, 2), (X, Y), epsilon=4.0, epoch=1)


def test_a_batch_larger_than_the_examples_is_told() -> None:
    with pytest.warns(UserWarning, match="batch_size is 100, but there are 60 examples"):
        rt.fit(nn.Linear(4, 2), (X, Y), batch_size=100, **FEW)


def test_a_search_takes_no_private_statistics() -> None:
    with pytest.raises(SettingError, match=r"rt\.tune takes no rt\.normalise"):
        rt.tune(lambda: nn.Linear(4, 2), rt.normalise((X, Y), budget_share=0.1), judges=(X, Y), epsilon=3.0)


def test_a_trained_model_prints_what_is_promised() -> None:
    trained = rt.fit(nn.Linear(4, 2), (X, Y), **FEW)
    assert repr(trained) == f"Trained(Linear, {trained.guarantee})"


def test_an_audit_says_nothing_of_its_own_toy(caplog: pytest.LogCaptureFixture) -> None:
    """Its network is ours: that it takes a slower path would be news to nobody."""
    with caplog.at_level(logging.INFO):
        audit_method("dpsgd", runs=10, seed=0)
    assert "general path" not in caplog.text
