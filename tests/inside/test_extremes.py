"""Numerical safety: gradients of every length that a float can have, and of none, move a sum by what is charged."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from reticent.accounting import Ledger, Unlimited
from reticent.inside import (
    Bound,
    Clip,
    Everyone,
    Flat,
    GradientSum,
    Normalise,
    Randomness,
    RoundSettings,
    Task,
    Vault,
    as_store,
)
from reticent.inside.dpis import ImportanceSettings, UnitDirection

LENGTHS = [0.0, 1.4e-45, 1e-42, *(10.0**power for power in range(-30, 31, 2)), 3e38, math.inf, math.nan]
CLIPS = [1e-30, 1e-20, 1e-6, 1.0, 1e6, 1e20]


class Plain(nn.Module):
    """Its gradient for an example is the example itself."""

    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1, width))

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.weight)


def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    return model(batch[0]).squeeze(1)


def moved(rows: Tensor, bound: Bound, settings: RoundSettings) -> Tensor:
    """What the rows add to a sum, by the engine that trains."""
    model = Plain(rows.shape[1])
    task = Task(model, loss, Flat(model))
    examples = as_store((rows, torch.zeros(len(rows))))
    vault = Vault(examples, randomness=Randomness.from_seed(0), ledger=Ledger(), allowance=Unlimited("a probe"))
    return vault.ask(GradientSum(task, bound, settings), vault.draw(Everyone(), settings))._value.double()


@pytest.mark.parametrize("length", LENGTHS, ids="{:.0e}".format)
@pytest.mark.parametrize("bound", [Clip(), Normalise(), UnitDirection()], ids=["clip", "normalise", "unit"])
def test_an_example_of_any_length_moves_a_sum_by_no_more_than_is_charged(bound: Bound, length: float) -> None:
    torch.manual_seed(0)
    for width in (1, 40):
        row = torch.randn(1, width)
        row *= length / row.norm() if math.isfinite(length) else length
        for clip in CLIPS if isinstance(bound, Clip) else [1.0]:
            settings = ImportanceSettings(1, 1, clip, 1.0, norm_total=1.0)
            found = moved(row, bound, settings)
            assert torch.isfinite(found).all()
            assert found.norm() <= bound.sensitivity(settings) * (1 + 1e-6), (clip, width)


@pytest.mark.parametrize("strange", [math.inf, -math.inf, math.nan, 3e38, 1e-45], ids=str)
def test_one_strange_number_in_a_gradient_spoils_nobody_elses(strange: float) -> None:
    torch.manual_seed(0)
    rows = torch.randn(5, 8)
    settings = RoundSettings(5, 5, 1.0, 1.0)
    rest = moved(rows[1:], Clip(), RoundSettings(4, 4, 1.0, 1.0))
    rows[0, 3] = strange
    found = moved(rows, Clip(), settings)
    assert torch.isfinite(found).all()
    assert (found - rest).norm() <= 1 + 1e-5


class Scaled(nn.Module):
    """Its gradient for an example is the sum of outer products of what comes in and what goes out."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(outputs, inputs))

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.weight)


@pytest.mark.parametrize("outputs", [1, 30])
@pytest.mark.parametrize("positions", [1, 2])
@pytest.mark.parametrize("outgoing", [1e-40, 1e-30, 1e-23, 4.5e-23, 1e-20, 1e-12, 1.0, 1e12], ids="{:.0e}".format)
def test_a_short_factor_and_a_long_one_move_a_sum_by_no_more_than_is_charged(
    outgoing: float, positions: int, outputs: int
) -> None:
    """The squares of one factor may be lost, or those of the other infinite, where their product is neither."""
    torch.manual_seed(0)
    for incoming in (1e-12, 1.0, 1e10, 1e19, 1e25):
        x = torch.randn(1, positions, 20)
        x *= incoming / x.norm()
        model = Scaled(20, outputs)
        task = Task(model, lambda net, batch: (net(batch[0]) * batch[1][:, None, None]).sum((1, 2)), Flat(model))
        for bound in (Clip(), Normalise(), UnitDirection()):
            for clip in CLIPS if isinstance(bound, Clip) else [1.0]:
                settings = ImportanceSettings(1, 1, clip, 1.0, norm_total=1.0)
                store = as_store((x, torch.full((1,), outgoing)))
                vault = Vault(store, randomness=Randomness.from_seed(0), ledger=Ledger(), allowance=Unlimited("probe"))
                found = vault.ask(GradientSum(task, bound, settings), vault.draw(Everyone(), settings))._value.double()
                assert torch.isfinite(found).all()
                assert found.norm() <= bound.sensitivity(settings) * (1 + 1e-6), (incoming, clip, bound)


class Bagged(nn.Module):
    """Its gradient for an example is its shares, times what goes out, in the rows that it looks up."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(5, 2))

    def forward(self, places: Tensor, shares: Tensor) -> Tensor:
        return nn.functional.embedding_bag(places, self.weight, mode="sum", per_sample_weights=shares)


@pytest.mark.parametrize("outgoing", [1e-40, 2e-38, 1e-30, 1e-23, 1e-12, 1.0, 1e12, 1e19], ids="{:.0e}".format)
def test_short_shares_of_a_long_gradient_move_a_sum_by_no_more_than_is_charged(outgoing: float) -> None:
    """A bag is a product as well: neither the squares of its factors nor a factor that is scaled may lose digits."""
    for share in (1e-40, 1e-23, 1e-12, 1.0, 1e10, 1e19, 1e38):
        store = as_store((torch.tensor([[1, 2, 4]]), torch.full((1, 3), share), torch.full((1,), outgoing)))
        model = Bagged()
        task = Task(model, lambda net, batch: net(batch[0], batch[1]).sum(1) * batch[2], Flat(model))
        for bound in (Clip(), Normalise(), UnitDirection()):
            for clip in CLIPS if isinstance(bound, Clip) else [1.0]:
                settings = ImportanceSettings(1, 1, clip, 1.0, norm_total=1.0)
                vault = Vault(store, randomness=Randomness.from_seed(0), ledger=Ledger(), allowance=Unlimited("probe"))
                found = vault.ask(GradientSum(task, bound, settings), vault.draw(Everyone(), settings))._value.double()
                assert torch.isfinite(found).all()
                assert found.norm() <= bound.sensitivity(settings) * (1 + 1e-6), (share, clip, bound)
