"""The guard: what a forward pass writes is found, put back, and named; what it does not write costs nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import reticent as rt
from reticent.errors import ModelError
from reticent.inside.guard import Guard


class Base(nn.Module):
    """A linear layer and a place to keep things; `when` says which inputs make it keep them."""

    def __init__(self, when: Callable[[Tensor], bool] = lambda _x: True) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 2)
        self.when = when
        self.log: list[Tensor] = []
        self.table: dict[str, Tensor] = {}
        self.last: deque[Tensor] = deque(maxlen=2)
        self.register_buffer("largest", torch.zeros(4))
        self.average = nn.Parameter(torch.zeros(4), requires_grad=False)
        self.plain = torch.zeros(4)

    def keep(self, x: Tensor) -> None:
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        if self.when(x):
            self.keep(x.detach())
        return self.layer(x)


class RunningMaximum(Base):
    def keep(self, x: Tensor) -> None:
        torch.maximum(self.largest, x.max(0).values, out=self.largest)


class OtherBuffer(Base):
    def keep(self, x: Tensor) -> None:
        self.largest = x.max(0).values


class MovingMean(Base):
    def keep(self, x: Tensor) -> None:
        self.average.mul_(0.9).add_(x.mean(0), alpha=0.1)


class NewAttribute(Base):
    def keep(self, x: Tensor) -> None:
        self.seen = x


class OtherAttribute(Base):
    def keep(self, x: Tensor) -> None:
        self.plain = x[0]


class SameTensor(Base):
    def keep(self, x: Tensor) -> None:
        self.plain.copy_(x[0])


class Appends(Base):
    def keep(self, x: Tensor) -> None:
        self.log.append(x)


class Exchanges(Base):
    def __init__(self, when: Callable[[Tensor], bool] = lambda _x: True) -> None:
        super().__init__(when)
        self.log = [torch.zeros(1)]

    def keep(self, x: Tensor) -> None:
        self.log[0] = x


class Writes(Base):
    def keep(self, x: Tensor) -> None:
        self.table["x"] = x


class Remembers(Base):
    def keep(self, x: Tensor) -> None:
        self.last.append(x)


KEEPERS = [
    RunningMaximum, OtherBuffer, MovingMean, NewAttribute, OtherAttribute, SameTensor, Appends, Exchanges, Writes,
    Remembers,
]  # fmt: skip


def everything(model: nn.Module) -> list[object]:
    """All that the model holds, as bits."""
    held: list[object] = [{k: v.tolist() for k, v in model.state_dict().items()}]
    for module in model.modules():
        for name, value in vars(module).items():
            if isinstance(value, Tensor):
                held.append((name, value.tolist()))
            elif isinstance(value, list | deque | dict) and not name.startswith("_"):
                held.append((name, repr(value)))
    return held


@pytest.mark.parametrize("kind", KEEPERS, ids=lambda kind: kind.__name__)
def test_what_forward_keeps_is_put_back_and_named(kind: type[Base]) -> None:
    model = nn.Sequential(nn.Identity(), kind())
    before = everything(model)
    with pytest.raises(ModelError, match=rf"module '1' \({kind.__name__}\) keeps something"), Guard(model)():
        model(torch.randn(3, 4))
    assert everything(model) == before


def test_words_that_rescale_their_vectors_are_found() -> None:
    class Words(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.vectors = nn.Parameter(torch.ones(5, 3))

        def forward(self, x: Tensor) -> Tensor:
            return nn.functional.embedding(x, self.vectors, max_norm=1.0).sum(1)

    model = Words()
    with pytest.raises(ModelError, match="'vectors'"), Guard(model)():
        model(torch.tensor([[1, 2]]))


def test_a_large_frozen_tensor_is_wiped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reticent.inside.guarding.values.COPIED_BYTES", 4)
    model = MovingMean()
    model.average.data.fill_(3.0)
    with pytest.raises(ModelError, match="average"), Guard(model)():
        model(torch.ones(3, 4))
    assert model.average.tolist() == [0.0] * 4


def test_what_the_owner_changes_between_queries_is_the_owners() -> None:
    model = RunningMaximum(when=lambda _x: False)
    guard = Guard(model)
    with guard():
        model(torch.ones(2, 4))
    model.largest.fill_(7.0)
    model.plain = torch.ones(4)
    model.log.append(torch.ones(1))
    with guard():
        model(torch.ones(2, 4))
    assert model.largest.tolist() == [7.0] * 4


@pytest.mark.parametrize("kind", KEEPERS, ids=lambda kind: kind.__name__)
def test_a_run_ends_where_private_examples_first_stay(kind: type[Base], blobs: tuple[Tensor, Tensor]) -> None:
    """Made-up rows lie between 0 and 1: what is kept of larger ones only shows when private ones come."""
    model = kind(when=lambda x: bool((x > 2).any()))
    run = rt.Run(
        model,
        torch.optim.SGD(model.layer.parameters(), lr=0.1),
        blobs,
        method=rt.methods.dpsgd(noise_multiplier=1.0),
        batch_size=50,
        rounds=3,
        delta=1e-5,
        seed=0,
    )
    before = everything(model)
    with pytest.raises(ModelError, match="keeps something of the examples"):
        run.step()
    assert everything(model) == before
    assert len(run.ledger) == 0, "nothing was released"


class ThroughData(Base):
    def keep(self, x: Tensor) -> None:
        self.largest.data.copy_(x.max(0).values)


class FrozenThroughData(Base):
    def keep(self, x: Tensor) -> None:
        self.average.data.copy_(x.mean(0))


@pytest.mark.parametrize("kind", [ThroughData, FrozenThroughData], ids=lambda kind: kind.__name__)
def test_what_is_written_past_the_version_counter_is_found(kind: type[Base]) -> None:
    model = kind()
    before = everything(model)
    with pytest.raises(ModelError, match="keeps something"), Guard(model)():
        model(torch.randn(3, 4) + 5)
    assert everything(model) == before


def test_trained_parameters_written_through_data_end_the_run(blobs: tuple[Tensor, Tensor]) -> None:
    class Shrinks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Tensor:
            if bool((x == 777.0).any()):
                self.layer.weight.data.mul_(0.9)
            return self.layer(x)

    model = Shrinks()
    blobs[0][::3, 0] = 777.0  # a value that no made-up row has
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    method = rt.methods.dpsgd(noise_multiplier=1.0)
    run = rt.Run(model, sgd, blobs, method=method, batch_size=50, rounds=3, delta=1e-5, seed=0)
    before = model.layer.weight.clone()
    with pytest.raises(ModelError):
        run.step()
    assert torch.equal(model.layer.weight, before)
