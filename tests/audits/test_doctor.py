"""The doctor finds each of the ordinary mistakes that would make a printed epsilon false, and nothing otherwise."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from typer.testing import CliRunner

import reticent as rt
from reticent.audits import doctor
from reticent.cli import app
from reticent.losses import cross_entropy

Batch = tuple[Tensor, Tensor]


@pytest.fixture
def pair() -> Batch:
    rng = torch.Generator().manual_seed(3)
    return torch.randn(60, 4, generator=rng), torch.arange(60) % 2


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))


def test_the_healthy_are_let_go(pair: Batch) -> None:
    model = net()
    before = [p.clone() for p in model.parameters()]
    found = doctor(model, pair)
    assert found.healthy, str(found)
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    assert "keep it to yourself" in str(found)


def divided(model: nn.Module, batch: Batch) -> Tensor:
    return cross_entropy(model, batch) / len(batch[0])


def hardest(model: nn.Module, batch: Batch) -> Tensor:
    losses = cross_entropy(model, batch)
    return losses * (losses >= losses.topk(max(1, len(losses) // 4)).values[-1])


def token_mean(model: nn.Module, batch: Batch) -> Tensor:
    """As language models do it: the sum over all that count, divided by how many count in the batch."""
    counted = batch[0][:, 0] > 0
    return cross_entropy(model, batch) * counted / counted.sum().clamp(min=1)


class HandMadeNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        if len(x) > 8:
            x = (x - x.mean(0)) / x.std(0)
        return self.layer(x)


class Keeps(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        if x.min() < 0:  # made-up rows lie between 0 and 1
            self.seen = x
        return self.layer(x)


@pytest.mark.parametrize(
    ("make", "loss", "probe"),
    [
        (net, divided, "each example alone"),
        (net, hardest, "each example alone"),
        (net, token_mean, "each example alone"),
        (HandMadeNorm, cross_entropy, "each example alone"),
        (Keeps, cross_entropy, "nothing is kept"),
    ],
    ids=["divided by the batch", "hardest", "token mean", "hand-made norm", "keeps rows"],
)
def test_the_mistake_is_found(
    pair: Batch, make: Callable[[], nn.Module], loss: Callable[[nn.Module, Batch], Tensor], probe: str
) -> None:
    found = doctor(make(), pair, loss)
    assert not found.healthy
    assert probe in {one.probe for one in found.findings if not one.holds}


def test_it_reads_dicts_of_tensors() -> None:
    class Rows(torch.utils.data.Dataset[dict[str, Tensor]]):
        def __len__(self) -> int:
            return 30

        def __getitem__(self, number: int) -> dict[str, Tensor]:
            rng = torch.Generator().manual_seed(number)
            return {"x": torch.randn(4, generator=rng), "y": torch.tensor(number % 2)}

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return cross_entropy(model, (batch["x"], batch["y"]))

    found = doctor(net(), Rows(), loss, rows=12)
    assert found.healthy, str(found)


def test_on_the_command_line() -> None:
    done = CliRunner().invoke(app, ["doctor", "--data", "digits", "--rows", "10", "--json"], catch_exceptions=False)
    assert done.exit_code == 0
    told = json.loads(done.stdout)
    assert (told["healthy"], told["private"], len(told["findings"])) == (True, True, 5)
    assert rt.audits.doctor is doctor
