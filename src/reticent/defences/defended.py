"""What a defence gives back: a plain model, and the statement that nothing is proved about it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from reticent.accounting import Guarantee
from reticent.data import Examples
from reticent.defences.plain import device_of
from reticent.errors import DataError

Progress = Callable[[int, int], None]
"""Called with the model updates made so far and those there will be."""


@dataclass(frozen=True, eq=False)
class Defended:
    """A model trained with an empirical defence; `guarantee` says that it has none, and why."""

    model: nn.Module
    guarantee: Guarantee
    rounds: int
    about: dict[str, object]


def unproved(why: str, *, seeded: bool) -> Guarantee:
    """The guarantee of an empirical defence: none.

    >>> print(unproved("nobody has proved any", seeded=False))
    no differential privacy: nobody has proved any
    """
    return Guarantee("none", math.inf, 0.0, why=why, seeded=seeded)


class Count:
    """Adds up model updates and tells the caller.

    >>> count = Count(4, lambda done, total: print(done, "of", total))
    >>> count(3)
    3 of 4
    """

    def __init__(self, total: int, progress: Progress | None):
        self.done, self.total, self._progress = 0, total, progress

    def __call__(self, updates: int) -> None:
        self.done += updates
        if self._progress is not None:
            self._progress(self.done, self.total)


def checked(examples: Iterable[object], model: nn.Module) -> tuple[Examples, int]:
    """The examples as tensors, and how many classes the model answers with; refuses labels it cannot give.

    >>> len(checked((torch.zeros(3, 2), [0, 1, 1]), nn.Linear(2, 2))[0])
    3
    """
    x, y = (torch.as_tensor(part) for part in examples)
    found = Examples(x, y)
    if len(found) == 0:
        raise DataError("there are no examples to train on")
    classes = classes_of(model, x)
    if y.dtype.is_floating_point or y.ndim != 1 or int(y.min()) < 0 or int(y.max()) >= classes:
        raise DataError(
            f"labels must be one whole number from 0 to {classes - 1} for each example, as many as the model has "
            f"outputs; found {y.dtype} from {y.min()} to {y.max()}. Renumber them, or give the model more outputs."
        )
    return Examples(x, y.long()), classes


def classes_of(model: nn.Module, x: Tensor) -> int:
    """How many classes a model tells apart.

    >>> classes_of(nn.Linear(2, 5), torch.zeros(3, 2))
    5
    """
    return int(probabilities(model, x[:1]).shape[1])


def probabilities(model: nn.Module, x: Tensor, batch_size: int = 1024) -> Tensor:
    """A model's prediction vectors, in evaluation mode: what an attacker is shown.

    >>> bool(torch.allclose(probabilities(nn.Linear(2, 4), torch.zeros(3, 2)).sum(1), torch.ones(3)))
    True
    """
    device, was_training = device_of(model), model.training
    model.eval()
    try:
        with torch.no_grad():
            return torch.cat([model(part.to(device)).softmax(1).cpu() for part in torch.split(x, batch_size)])
    finally:
        model.train(was_training)
