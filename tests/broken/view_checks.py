"""Checks of views: an example with all its views is one example, and none is made of another."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from reticent.accounting import Ledger, Unlimited
from reticent.gradients.grouped import GroupedLoss
from reticent.inside import Clip, Everyone, Flat, GradientSum, Randomness, RoundSettings, Task, Vault
from reticent.inside.store import as_store
from reticent.inside.views import Views

NOW = RoundSettings(size=8, batch_size=8, max_grad_norm=0.5, noise_multiplier=1.0)


def _loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    return model(batch[0].flatten(1))[:, 0]


def _asked(x: Tensor) -> Tensor:
    torch.manual_seed(0)
    model, views = nn.Linear(12, 1), Views(mirror=True, shift=1, count=4)
    vault = Vault(
        as_store((x, torch.zeros(len(x)))), randomness=Randomness.from_seed(0), ledger=Ledger(),
        allowance=Unlimited("a test"), views=views,
    )  # fmt: skip
    query = GradientSum(Task(model, GroupedLoss(_loss), Flat(model)), Clip(), NOW)
    with vault.round(3):
        return vault.ask(query, vault.draw(Everyone(), NOW))._value


def an_example_with_its_views_is_one() -> None:
    """Without its pixels, an example leaves the sum by no more than the clip norm, and no other is touched."""
    x = 10 * torch.randn(8, 1, 3, 4, generator=torch.Generator().manual_seed(1))
    whole = _asked(x)
    for out in range(8):
        gone = x.clone()
        gone[out] = float("nan")  # counts for nothing
        assert float((whole - _asked(gone)).norm()) <= NOW.max_grad_norm * (1 + 1e-4)


def views_are_the_same_when_a_round_is_asked_again() -> None:
    """A replay must ask what was asked, whoever else is there."""
    x = torch.randn(8, 1, 3, 4, generator=torch.Generator().manual_seed(1))
    assert torch.equal(_asked(x), _asked(x))
    alone = Views(mirror=True, shift=1, count=4)
    batch = (x, torch.zeros(8))
    both = alone.seen(batch, np.arange(8), 9).rows[0][5]
    assert torch.equal(alone.seen((x[5:6], torch.zeros(1)), np.array([5]), 9).rows[0][0], both)


CHECKS: list[Callable[[], None]] = [
    an_example_with_its_views_is_one,
    views_are_the_same_when_a_round_is_asked_again,
]
