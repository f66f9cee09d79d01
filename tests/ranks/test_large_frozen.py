"""A frozen part that is cut over the ranks (FSDP2): what is trained is the same as in one process that holds it all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import runs
import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from world import answers

import reticent as rt
from reticent.errors import ModelError

pytestmark = pytest.mark.filterwarnings("ignore")  # of torch's own about its processor backend


class Adapted(nn.Module):
    """A frozen layer with a small correction that is learned."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.base = nn.Linear(inputs, outputs).requires_grad_(False)
        self.down, self.up = nn.Linear(inputs, 2, bias=False), nn.Linear(2, outputs, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + self.up(self.down(x))


def network() -> nn.Module:
    torch.manual_seed(7)  # pre-trained: the same everywhere
    return nn.Sequential(Adapted(4, 8), nn.Tanh(), Adapted(8, 8), nn.Tanh(), nn.Linear(8, 2))


def cut(model: nn.Module, **how: Any) -> nn.Module:
    mesh = init_device_mesh("cpu", (2,))
    for part in (model[0], model[2]):
        trained = {parameter for parameter in part.parameters() if parameter.requires_grad}
        fully_shard(part, mesh=mesh, **{"ignored_params": trained, "reshard_after_forward": True} | how)
    return model


def trained(run: rt.Run) -> dict[str, Tensor]:
    list(run)
    return {name: part.detach().clone() for name, part in run.model.named_parameters() if part.requires_grad}


def test_adapters_are_trained_as_in_one_process() -> None:
    right = answers(1, lambda _rank: trained(runs.make("dpsur", rounds=5, model=network())))[0]
    for found in answers(2, lambda _rank: trained(runs.make("dpsur", rounds=5, model=cut(network())))):
        assert found.keys() == right.keys()
        for name, part in found.items():
            torch.testing.assert_close(part, right[name], rtol=1e-4, atol=1e-6)


def test_a_checkpoint_holds_what_is_trained(tmp_path: Path) -> None:
    def begun(_rank: int) -> None:
        run = runs.make(rounds=4, model=cut(network()), folder=tmp_path)
        run.step()
        run.save()

    def ended(_rank: int) -> dict[str, Tensor]:
        run = runs.make(rounds=4, model=cut(network()), folder=tmp_path, resume=True)
        assert run.number == 1
        return trained(run)

    answers(2, begun)
    right = answers(1, lambda _rank: trained(runs.make(rounds=4, model=network())))[0]
    for name, part in answers(2, ended)[0].items():
        torch.testing.assert_close(part, right[name], rtol=1e-4, atol=1e-6)


def test_what_is_trained_must_be_whole() -> None:
    def job(_rank: int) -> str:
        with pytest.raises(ModelError) as caught:
            runs.make(rounds=2, model=cut(network(), ignored_params=set()))
        return str(caught.value)

    assert all("'0.down.weight' is cut over the ranks" in said for said in answers(2, job))


def test_a_module_that_stays_whole_is_refused() -> None:
    def job(_rank: int) -> str:
        with pytest.raises(ModelError) as caught:
            runs.make(rounds=2, model=cut(network(), reshard_after_forward=False))
        return str(caught.value)

    assert all("reshard_after_forward=True" in said for said in answers(2, job))
