"""A second look at real examples: what made-up ones do not show ends the run, and nothing is told of the data."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import reticent as rt
from reticent.errors import ModelError
from reticent.inside import look_again as module
from reticent.losses import cross_entropy

Pair = tuple[Tensor, Tensor]
MARK = 1234.5


def shared_by_the_marked(model: nn.Module, batch: Pair) -> Tensor:
    """Divides by how many rows of the batch carry a mark that no made-up row has."""
    marked = (batch[0][:, 0] == MARK).sum()
    return cross_entropy(model, batch) / (1 + marked)


def a_run(pair: Pair, **settings: object) -> rt.Run:
    torch.manual_seed(0)
    net = nn.Linear(4, 2)
    chosen = {"method": rt.methods.dpsgd(noise_multiplier=10.0), "batch_size": 100, "rounds": 200} | settings
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    return rt.Run(net, optimizer, pair, loss=shared_by_the_marked, delta=1e-5, seed=0, **chosen)


@pytest.fixture
def marked(blobs: Pair) -> Pair:
    x, y = blobs
    x = x.clone()
    x[::2, 0] = MARK
    return x, y


def test_what_only_real_examples_show_ends_the_run(marked: Pair) -> None:
    run = a_run(marked)
    with pytest.raises(ModelError, match="must not be released") as refusal:
        run.step()
    assert str(MARK) not in str(refusal.value)
    assert len(run.ledger) == 0


def test_it_is_looked_at_again_later(marked: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first round may be lucky: here it is not looked at, and the error does not last."""
    monkeypatch.setattr("reticent.inside.vault.CHANCE", 0.2)
    seen: list[int] = []
    right = module.look_again

    def after_the_first(*asked: object) -> None:
        seen.append(1)
        if len(seen) > 1:
            right(*asked)  # type: ignore[arg-type]

    monkeypatch.setattr("reticent.inside.vault.look_again", after_the_first)
    with pytest.raises(ModelError, match="must not be released"):
        list(a_run(marked))
    assert len(seen) == 2


def test_examples_that_are_apart_are_let_go(blobs: Pair) -> None:
    assert len(list(a_run(blobs, rounds=60))) == 60


def test_public_rows_are_taken_where_made_up_ones_will_not_do() -> None:
    """A model that fails on all that is not a year is checked with years."""

    class Years(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(1, 2)

        def forward(self, x: Tensor) -> Tensor:
            if bool(((x < 1900) | (x > 2100)).any()):
                raise ValueError("not a year")
            return self.layer(x / 2000)

    x, y = 1950.0 + torch.arange(60.0)[:, None], torch.arange(60) % 2
    net = Years()
    settings = {"method": rt.methods.dpsgd(noise_multiplier=1.0), "batch_size": 20, "rounds": 2, "delta": 1e-5}
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with pytest.raises(ModelError, match=r"not a year.*probes="):
        rt.Run(net, optimizer, (x, y), **settings)
    probes = torch.tensor([[1900.0], [2000.0], [2010.0], [2024.0]]), torch.tensor([0, 1, 0, 1])
    assert len(list(rt.Run(net, optimizer, (x, y), probes=probes, **settings))) == 2


@pytest.mark.parametrize("most", [None, 20, 200])
def test_as_many_are_checked_together_as_are_evaluated_together(most: int | None) -> None:
    """A model that mixes from one row more on is safe, and one that mixes so many is refused."""

    class Crowded(nn.Linear):
        limit = max(64, most or 0)

        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x - x.mean(0) if len(x) >= self.limit else x)

    net, rows = Crowded(4, 2), (torch.rand(300, 4), torch.randint(0, 2, (300,)))
    method = rt.methods.dpsur(noise_multiplier=4.0, test="smooth")
    with pytest.raises(ModelError, match="mixes examples"):
        rt.Run(
            net,
            torch.optim.SGD(net.parameters(), lr=0.1),
            rows,
            method=method,
            batch_size=10,
            rounds=1,
            loss="cross_entropy",
            max_physical_batch_size=most,
        )
