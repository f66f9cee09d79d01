"""Modules in the mode they are kept in: frozen statistics are respected, and a change of mode is checked again."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import reticent as rt
from reticent.errors import ModelError
from reticent.evaluating import predict

X, Y = torch.randn(40, 6, generator=torch.Generator().manual_seed(0)), torch.arange(40) % 2


class Transfer(nn.Module):
    """A frozen backbone with statistics of its own, and a head to train."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.ReLU()).requires_grad_(False).eval()
        self.head = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.backbone(x))  # type: ignore[no-any-return]


def run_of(model: nn.Module, **settings: Any) -> rt.Run:
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    method = rt.methods.dpsgd(noise_multiplier=1.0)
    made = {"method": method, "batch_size": 10, "rounds": 4, "delta": 1e-3, "seed": 0} | settings
    return rt.Run(model, optimizer, (X, Y), **made)


def test_a_frozen_batch_norm_in_eval_mode_is_trained_with() -> None:
    model = Transfer()
    before = {name: part.clone() for name, part in model.backbone.state_dict().items()}
    run = run_of(model, loss="cross_entropy")
    run.step()
    predict(model, X)  # which leaves every module in the mode it was in
    run.step()
    assert model.training
    assert not model.backbone[1].training
    assert all(torch.equal(part, before[name]) for name, part in model.backbone.state_dict().items())


def test_put_into_another_mode_the_model_is_checked_again_before_anything_is_released() -> None:
    model = Transfer()
    run = run_of(model, loss="cross_entropy")
    run.step()
    model.train()
    with pytest.raises(ModelError, match=r"BatchNorm1d.*freeze it"):
        run.step()
    assert len(run.ledger) == 1
    model.backbone.eval()
    run.step()
    assert run.number == 2


class Squeezed(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).squeeze()


def test_a_model_that_loses_the_axis_of_one_example_is_refused_by_name() -> None:
    with pytest.raises(ModelError, match=r"\.squeeze\(-1\)"):
        run_of(Squeezed(6, 1), loss="mse")


@pytest.mark.parametrize("norm", [nn.utils.spectral_norm, nn.utils.parametrizations.spectral_norm])
def test_a_spectral_norm_is_told_what_it_is(norm: Any) -> None:
    model = nn.Sequential(norm(nn.Linear(6, 2)))
    with pytest.raises(ModelError, match=r"spectral norm.*eval mode"):
        run_of(model, loss="cross_entropy")
    if norm is nn.utils.parametrizations.spectral_norm:
        run_of(model.eval(), loss="cross_entropy").step()


def test_a_lazy_module_is_refused_by_a_run_too() -> None:
    model = nn.Sequential(nn.LazyLinear(2))
    with pytest.raises(ModelError, match="lazy"):
        run_of(model, loss="cross_entropy")
