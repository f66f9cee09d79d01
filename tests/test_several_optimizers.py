"""Several networks, losses and optimizers over one vault: every release is in one ledger and one plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from reticent.accounting import Gaussian, Subsampled
from reticent.errors import SettingError
from reticent.methods import dpsgd, dpsur
from reticent.optimizers import Together
from reticent.run import Run


class TwoParts(nn.Module):
    """Features and two heads, one of which must not train the features."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.features, self.head, self.side = nn.Linear(4, 6), nn.Linear(6, 2), nn.Linear(6, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        found = torch.tanh(self.features(x))
        return self.head(found), self.side(found.detach())


def two_losses(model: nn.Module, batch: Any) -> Tensor:
    x, y = batch
    classes, side = model(x)
    return functional.cross_entropy(classes, y, reduction="none") + (side[:, 0] - x[:, 0]).square()


def make(blobs: tuple[Tensor, Tensor], **settings: Any) -> Run:
    model = TwoParts()
    adam = torch.optim.Adam([*model.features.parameters(), *model.head.parameters()], lr=0.05)
    sgd = torch.optim.SGD(model.side.parameters(), lr=0.1, momentum=0.9)
    said = {"method": dpsgd(noise_multiplier=1.0), "batch_size": 50, "rounds": 20, "seed": 0, **settings}
    return Run(model, [adam, sgd], blobs, loss=two_losses, **said)


def test_two_optimizers_are_moved_by_the_releases_of_one_plan(blobs: tuple[Tensor, Tensor]) -> None:
    run, x, y = make(blobs), *blobs
    start = {name: p.detach().clone() for name, p in run.model.named_parameters()}
    list(run)
    assert [entry.event for entry in run.ledger] == [Subsampled(0.25, Gaussian(1.0))] * 20
    assert all(not torch.equal(p, start[name]) for name, p in run.model.named_parameters())
    assert (run.model(x)[0].argmax(1) == y).float().mean() > 0.85


def test_it_is_resumed_with_the_state_of_both(blobs: tuple[Tensor, Tensor], tmp_path: Path) -> None:
    whole = make(blobs)
    list(whole)
    first = make(blobs, folder=tmp_path / "run", checkpoint_seconds=0.0)
    for _ in range(7):
        first.step()
    first.save()
    del first
    rest = make(blobs, folder=tmp_path / "run", resume=True)
    assert rest.number == 7
    list(rest)
    for one, other in zip(whole.model.parameters(), rest.model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_dropped_candidate_leaves_nothing_in_either(blobs: tuple[Tensor, Tensor]) -> None:
    method = dpsur(noise_multiplier=1.0, beta=-1e9, seen_attempts=True)  # nothing is good enough
    run = make(blobs, method=method, rounds=3, batch_size=20)
    before = [p.detach().clone() for p in run.model.parameters()]
    list(run)
    assert run.kept == 0
    assert all(torch.equal(p, old) for p, old in zip(run.model.parameters(), before, strict=True))
    assert not any(run.optimizer.state.values())


def test_what_belongs_to_two_or_to_none_is_refused(blobs: tuple[Tensor, Tensor]) -> None:
    model, method = TwoParts(), dpsgd(noise_multiplier=1.0)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(SettingError, match="belongs to two optimizers"):
        Together([sgd, torch.optim.SGD(model.side.parameters(), lr=0.1)])
    with pytest.raises(SettingError, match="does not hold the trainable parameter"):
        Run(
            model,
            [torch.optim.SGD(model.side.parameters(), lr=0.1)],
            blobs,
            loss=two_losses,
            method=method,
            batch_size=10,
            rounds=1,
        )


def test_a_small_private_gan() -> None:
    """Only the critic sees examples; the maker learns from the critic, which is paid for, and so is covered too."""
    torch.manual_seed(0)
    real = torch.randn(1000, 1) * 0.5 + 3.0
    maker, critic = nn.Linear(2, 1), nn.Sequential(nn.Linear(1, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))

    def judged(model: nn.Module, batch: Any) -> Tensor:
        (seen,) = batch
        made = maker(torch.randn(len(seen), 2)).detach()
        return (functional.softplus(-model(seen)) + functional.softplus(model(made)))[:, 0]

    run = Run(
        critic,
        torch.optim.Adam(critic.parameters(), lr=0.02),
        real,
        method=dpsgd(noise_multiplier=3.0),
        loss=judged,
        batch_size=200,
        rounds=250,
        delta=1e-4,
        seed=0,
    )
    learns = torch.optim.Adam(maker.parameters(), lr=0.02)
    for _ in run:
        learns.zero_grad()
        functional.softplus(-critic(maker(torch.randn(200, 2)))).mean().backward()
        learns.step()
    assert len(run.ledger) == 250
    assert abs(maker(torch.randn(2000, 2)).mean().item() - 3.0) < 1.0
