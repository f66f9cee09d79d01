"""How the user's own files become inputs: kept beside a trained model, so that new ones are read as the old were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from torch import Tensor


class Preprocessing(Protocol):
    """What is declared of the user's own data; all of it is public."""

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, in the order of their labels."""
        ...

    @property
    def assumes(self) -> tuple[str, ...]:
        """What a guarantee rests on where this was used."""
        ...

    def accepts(self, source: object) -> bool:
        """Whether this is something to be read, and not an input already."""
        ...

    def apply(self, source: Any) -> Tensor:
        """The inputs that a file, folder or data frame holds, each row by itself."""
        ...

    def to_json(self) -> dict[str, object]:
        """Everything as plain JSON data."""
        ...


def names_of(classes: Sequence[str], answers: Tensor) -> list[str]:
    """The class names of a model's answers.

    >>> import torch
    >>> names_of(("no", "yes"), torch.tensor([[0.1, 2.0], [1.0, 0.0]]))
    ['yes', 'no']
    """
    return [classes[place] for place in answers.argmax(1).tolist()]


def in_units(reading: object, metrics: Mapping[str, float]) -> dict[str, float]:
    """Metrics of a number that was scaled to its public range, as errors in the number's own units.

    >>> from types import SimpleNamespace as Plain
    >>> in_units(Plain(target=Plain(low=100, high=300)), {"mae": 0.1, "baseline_rmse": 0.5, "r2": 0.9})
    {'mae': 20.0, 'baseline_rmse': 100.0, 'r2': 0.9}
    """
    span = getattr(reading, "target", None)
    width = 1.0 if span is None else span.high - span.low
    return {
        name: width * value if name.removeprefix("baseline_") in ("mae", "rmse") else value
        for name, value in metrics.items()
    }


def said_by(reading: Preprocessing, answers: Tensor) -> list[str]:
    """What answers say of each row, in the words of whoever declared the data: a class name, or a number."""
    words = getattr(reading, "said", None)
    found: list[str] = names_of(reading.classes, answers) if words is None else words(answers)
    return found
