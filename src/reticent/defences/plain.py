"""Plain training, without privacy: what the defences add to, and how each of their models is trained."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim import SGD, Adam, Optimizer

from reticent.defences.chains import small_steps
from reticent.errors import SettingError

Tell = Callable[[int], None]
"""Called with the number of model updates just made."""


@dataclass(frozen=True, kw_only=True)
class Plain:
    """How long, in what batches and with which optimizer: SGD if a momentum is given, else Adam.

    >>> Plain(epochs=2, batch_size=32, lr=0.1, momentum=0.9)
    Plain(epochs=2, batch_size=32, lr=0.1, momentum=0.9)
    """

    epochs: float = 30
    batch_size: int = 128
    lr: float = 1e-3
    momentum: float | None = None

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "lr"):
            if not 0 < getattr(self, name) < math.inf:
                raise SettingError(f"{name} must be a positive number, not {getattr(self, name)}")
        if self.batch_size != int(self.batch_size):
            raise SettingError(f"batch_size must be a whole number, not {self.batch_size}")
        if self.momentum is not None and not 0 <= self.momentum < 1:
            raise SettingError(f"momentum must be at least 0 and below 1, not {self.momentum}")

    def rounds(self, size: int) -> int:
        """How many steps see each of `size` examples `epochs` times on average.

        >>> Plain(epochs=2, batch_size=10).rounds(95)
        19
        """
        return max(1, math.ceil(self.epochs * size / self.batch_size))

    def within(self, size: int) -> Plain:
        """The same with batches no larger than the examples there are.

        >>> Plain(batch_size=128).within(100).batch_size
        100
        """
        return replace(self, batch_size=min(int(self.batch_size), size))

    def optimizer(self, parameters: Iterable[nn.Parameter]) -> Optimizer:
        """The optimizer on these parameters.

        >>> type(Plain().optimizer(nn.Linear(2, 2).parameters())).__name__
        'Adam'
        """
        if self.momentum is None:
            return Adam(parameters, lr=self.lr)
        return SGD(parameters, lr=self.lr, momentum=self.momentum)


def step(optimizer: Optimizer, loss: Tensor) -> None:
    """One step down the loss."""
    optimizer.zero_grad()
    torch.autograd.backward(loss)
    optimizer.step()


def batches(rows: Tensor, batch_size: int, seed: int) -> Iterator[Tensor]:
    """Batches of one size, for ever: the rows in random order, shuffled anew whenever they run out.

    >>> drawn = batches(torch.arange(3), 2, seed=0)
    >>> sorted(torch.cat([next(drawn) for _ in range(3)]).tolist())
    [0, 0, 1, 1, 2, 2]
    """
    rng = torch.Generator().manual_seed(seed)
    left = rows[:0]
    while True:
        while len(left) < batch_size:
            left = torch.cat([left, rows[torch.randperm(len(rows), generator=rng)]])
        yield left[:batch_size]
        left = left[batch_size:]


def fit(
    model: nn.Module, x: Tensor, y: Tensor, rows: Tensor, plain: Plain, *, rounds: int, seed: int, tell: Tell
) -> None:
    """Train a classifier on some rows of `(x, y)`; `y` holds labels, or a distribution over them for each example.

    >>> net, x, y = nn.Linear(1, 2), torch.tensor([[-1.0], [1.0]]), torch.tensor([0, 1])
    >>> fit(net, x, y, torch.arange(2), Plain(lr=0.1), rounds=50, seed=0, tell=lambda updates: None)
    >>> net(x).argmax(1).tolist()
    [0, 1]
    """
    device = device_of(model)
    optimizer = plain.optimizer(model.parameters())
    drawn = batches(rows, plain.batch_size, seed)
    model.train()
    with known_chance(seed), small_steps([model], plain.batch_size):
        for _ in range(rounds):
            batch = next(drawn)
            step(optimizer, cross_entropy(model(x[batch].to(device)), y[batch].to(device)))
            tell(1)


def device_of(model: nn.Module) -> torch.device:
    """Where a model lives.

    >>> device_of(nn.Linear(1, 1)).type
    'cpu'
    """
    return next(model.parameters()).device


@contextmanager
def known_chance(seed: int) -> Iterator[None]:
    """Initial weights and dropout draw from torch's own generators: make them repeatable, then put them back.

    >>> before = torch.get_rng_state()
    >>> with known_chance(1):
    ...     _ = torch.rand(2)
    >>> torch.equal(before, torch.get_rng_state())
    True
    """
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(seed)
        yield


def seeds(seed: int | None, count: int) -> list[int]:
    """Seeds for the independent parts of a run; without a seed, from the operating system.

    >>> len(set(seeds(0, 100))), seeds(None, 1) == seeds(None, 1)
    (100, False)
    """
    rng = torch.Generator()
    rng.manual_seed(rng.seed() if seed is None else seed)
    return torch.randint(2**62, (count,), generator=rng).tolist()
